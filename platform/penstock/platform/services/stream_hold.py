"""Holds on streams: a stream stays drained while a process other than a host changes its state.

Before the drain, the desired state is written to a file next to the stream's folders. If the process is killed,
the next operation and `penstock status` find it there.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from penstock.core.clock import now_ms
from penstock.core.files import write_atomically
from penstock.core.periodic import run_periodically
from penstock.core.progress import ProgressReporter
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
    """The desired state to restore, the operation that holds the stream, and the revision of its drain request."""

    desired: DesiredRunState
    operation: str
    revision: int


@contextmanager
def hold_stream(
    store: "ControlStore", streams: Path, stream: str, operation: str, report_progress: ProgressReporter
) -> "Iterator[WriteFence]":
    """Drain a stream and hold its lease; restore its desired state afterwards.

    A state that is requested during the hold wins over the restored one. A stream with an interrupted switch stays
    drained, because its tables are inconsistent until the replay is finished. A stream whose operation was killed
    also stays drained; when the operation is repeated, the state from before the first attempt is restored.
    """
    desired_state = store.read_desired_states().get(stream)
    if desired_state is not None and desired_state.needs_host:
        report_progress("draining the stream")
        drain_hold, request = _request_drain(store, streams, desired_state, operation)
        with _restore_desired_state(store, streams, stream, drain_hold):
            wait_for_state(store, request, DRAIN_TIMEOUT_S)
            with acquire_fence(store, streams, stream, operation) as fence:
                yield fence
        return
    # Acquire the lease first: a current holder may still be writing its hold.
    with acquire_fence(store, streams, stream, operation) as fence:
        unfinished_hold = read_hold(streams, stream, desired_state)
        resumed_hold = None if unfinished_hold is None else replace(unfinished_hold, operation=operation)
        if resumed_hold is not None:
            _write_hold(streams, stream, resumed_hold)
        with _restore_desired_state(store, streams, stream, resumed_hold):
            yield fence


def read_hold(streams: Path, stream: str, desired_state: DesiredState | None) -> StreamHold | None:
    """Return the hold on a stream, or the one that a killed process left; None if there is none."""
    path = _hold_path(streams, stream)
    if not path.exists():
        return None
    hold = msgspec.json.decode(path.read_bytes(), type=StreamHold)
    return hold if desired_state is not None and desired_state.revision == hold.revision else None


def _request_drain(
    store: "ControlStore", streams: Path, desired_state: DesiredState, operation: str
) -> tuple[StreamHold, StateRequest]:
    """Write the hold, then request the drain. Raises StackError if another state was requested meanwhile."""
    hold, now = StreamHold(desired_state.desired, operation, desired_state.revision + 1), now_ms()
    _write_hold(streams, desired_state.stream, hold)
    drained_state = store.set_desired_state_after(desired_state, DesiredRunState.DRAINED, now)
    if drained_state is None:
        raise StackError(
            f"another state of {desired_state.stream} was requested while {operation} was about to drain it; "
            "check the desired state with `penstock status`, then try again"
        )
    return hold, StateRequest(drained_state, now, 0, is_restart=False)


@contextmanager
def _restore_desired_state(
    store: "ControlStore", streams: Path, stream: str, hold: StreamHold | None
) -> Iterator[None]:
    """Restore the desired state after the block, unless another state was requested since the drain."""
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
    write_atomically(path, msgspec.json.encode(hold))


def _hold_path(streams: Path, stream: str) -> Path:
    return streams / stream / "hold.json"


@contextmanager
def acquire_fence(
    store: "ControlStore", streams: Path, stream: str, operation: str
) -> "Iterator[WriteFence]":
    """Acquire the lease of a stream without a host, and yield the write fence."""
    from penstock.engine.batch.write_fence import WriteFence

    leases = LeaseKeeper(store, operation, now_ms, LEASE_TTL_MS)
    lease = leases.acquire(stream)
    if lease is None:
        current_lease = store.read_lease(stream)
        raise StackError(
            f"{stream} is leased to {current_lease.holder if current_lease else 'another process'}, "
            f"but {operation} needs the lease; run `penstock stream drain {stream}`, then try again"
        )
    try:
        # The lease may expire while the store is unavailable; `WriteFence` then refuses writes.
        with run_periodically(LEASE_TTL_MS / 3000, leases.renew, "hold heartbeat"):
            _report_unrecorded_batches(store, streams, stream)
            yield WriteFence(stream, lease.epoch, lambda: leases.is_held(lease))
    finally:
        leases.release(lease)


def _report_unrecorded_batches(store: "ControlStore", streams: Path, stream: str) -> None:
    """Record the batches that a host committed but could not report; the next batch has a higher ID."""
    from penstock.engine.batch.journal import read_retained_outcomes
    from penstock.engine.host.control_reporter import to_batch_record

    last_batch = store.read_last_batch(stream)
    journal = resolve_stream_folder(streams, stream) / "journal"
    with suppress(JournalError):  # a journal of an unsupported version, which a replay replaces
        for outcome in read_retained_outcomes(journal, -1 if last_batch is None else last_batch.batch_id):
            store.record_batch(to_batch_record(stream, outcome))
