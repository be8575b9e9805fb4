"""A stream that stands still while somebody else than a host works on what it keeps.

What it was wanted to be is written down before it is drained, beside its folders: whoever is killed meanwhile
leaves it to the next one, and to `penstock status`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from penstock.core.clock import now_ms
from penstock.core.periodic import run_periodically
from penstock.engine.errors import JournalError
from penstock.engine.host.control import DesiredRunState, DesiredState
from penstock.engine.host.leases import LeaseKeeper
from penstock.engine.stream_folders import read_unfinished_switch, resolve_stream_folder
from penstock.platform.errors import StackError
from penstock.platform.services.stream_lifecycle import StateRequest, wait_for_state

if TYPE_CHECKING:
    from penstock.engine.batch.write_fence import WriteFence
    from penstock.platform.control import ControlStore

DRAIN_TIMEOUT_S = 120.0
LEASE_TTL_MS = 30_000


class StreamHold(msgspec.Struct, frozen=True):
    """What a stream is to be again, after what, and the revision of the wish by which it was drained for that."""

    desired: DesiredRunState
    operation: str
    revision: int


@contextmanager
def hold_stream(
    store: "ControlStore", streams: Path, stream: str, operation: str, report_progress: Callable[[str], None]
) -> "Iterator[WriteFence]":
    """Drain a stream and hold its lease; afterwards it is again what it was wanted to be.

    What somebody asks of it meanwhile holds: it is that afterwards. A stream whose switch was cut off stays
    drained: its tables are of two kinds until the replay is finished. So does one whose work was killed, until
    that is done again: then it is what it was wanted to be before the first.
    """
    desired_state = store.read_desired_states().get(stream)
    if desired_state is not None and desired_state.needs_host:
        report_progress("draining the stream")
        drain_hold, request = _request_drain(store, streams, desired_state, operation)
        with _restore_desired_state(store, streams, stream, drain_hold):
            wait_for_state(store, request, DRAIN_TIMEOUT_S)
            with _acquire_fence(store, streams, stream, operation) as fence:
                yield fence
        return
    # Who holds it still now, if anybody does, has written down what it is to be: first have the lease.
    with _acquire_fence(store, streams, stream, operation) as fence:
        unfinished_hold = read_hold(streams, stream, desired_state)
        resumed_hold = None if unfinished_hold is None else replace(unfinished_hold, operation=operation)
        if resumed_hold is not None:
            _write_hold(streams, stream, resumed_hold)
        with _restore_desired_state(store, streams, stream, resumed_hold):
            yield fence


def read_hold(streams: Path, stream: str, desired_state: DesiredState | None) -> StreamHold | None:
    """For what a stream stands still, or stood when that was killed; None where nobody left it so."""
    path = _hold_path(streams, stream)
    if not path.exists():
        return None
    hold = msgspec.json.decode(path.read_bytes(), type=StreamHold)
    return hold if desired_state is not None and desired_state.revision == hold.revision else None


def _request_drain(
    store: "ControlStore", streams: Path, desired_state: DesiredState, operation: str
) -> tuple[StreamHold, StateRequest]:
    """Ask for it to be drained, unless somebody asked anything since; what it is to be again is written first."""
    hold, now = StreamHold(desired_state.desired, operation, desired_state.revision + 1), now_ms()
    _write_hold(streams, desired_state.stream, hold)
    drained_state = store.set_desired_state_after(desired_state, DesiredRunState.DRAINED, now)
    if drained_state is None:
        raise StackError(
            f"somebody asked something of {desired_state.stream} as {operation} was about to drain it: "
            "`penstock status` shows what is wanted; then try again"
        )
    return hold, StateRequest(drained_state, now, 0, is_restart=False)


@contextmanager
def _restore_desired_state(
    store: "ControlStore", streams: Path, stream: str, hold: StreamHold | None
) -> Iterator[None]:
    """Have the stream be what it was wanted to be, unless somebody asked for something since it was drained."""
    try:
        yield
    finally:
        if hold is not None and not read_unfinished_switch(streams, stream):
            drained_state = DesiredState(stream, DesiredRunState.DRAINED, hold.revision)
            store.set_desired_state_after(drained_state, hold.desired, now_ms())
            _hold_path(streams, stream).unlink(missing_ok=True)


def _write_hold(streams: Path, stream: str, hold: StreamHold) -> None:
    path = _hold_path(streams, stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    temp_path = path.with_suffix(".partial")
    temp_path.write_bytes(msgspec.json.encode(hold))
    temp_path.replace(path)


def _hold_path(streams: Path, stream: str) -> Path:
    return streams / stream / "standstill.json"


@contextmanager
def _acquire_fence(
    store: "ControlStore", streams: Path, stream: str, operation: str
) -> "Iterator[WriteFence]":
    """The right to write a stream that stands still."""
    from penstock.engine.batch.write_fence import WriteFence

    leases = LeaseKeeper(store, operation, now_ms, LEASE_TTL_MS)
    lease = leases.acquire(stream)
    if lease is None:
        current_lease = store.read_lease(stream)
        raise StackError(
            f"{stream} is held by {current_lease.holder if current_lease else 'somebody'}, "
            f"and must stand still for {operation}: `penstock stream drain {stream}`, then try again"
        )
    try:
        # While the store is away the lease may run out: then it is lost, and `WriteFence` says so.
        with run_periodically(LEASE_TTL_MS / 3000, leases.renew, "heartbeat of a standstill"):
            _report_unrecorded_batches(store, streams, stream)
            yield WriteFence(stream, lease.epoch, lambda: leases.is_held(lease))
    finally:
        leases.release(lease)


def _report_unrecorded_batches(store: "ControlStore", streams: Path, stream: str) -> None:
    """Tell the store what a host could not tell any more: what comes next is told with a higher number."""
    from penstock.engine.batch.journal import read_retained_outcomes
    from penstock.engine.host.control_reporter import to_batch_record

    last_batch = store.read_last_batch(stream)
    journal = resolve_stream_folder(streams, stream) / "journal"
    with suppress(JournalError):  # of an earlier version, which a replay is the way out of
        for outcome in read_retained_outcomes(journal, -1 if last_batch is None else last_batch.batch_id):
            store.record_batch(to_batch_record(stream, outcome))
