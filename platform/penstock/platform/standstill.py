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

from penstock.pipelines.errors import JournalError
from penstock.pipelines.host.control import Desired, DesiredState
from penstock.pipelines.host.folders import folder_of_stream, switching
from penstock.pipelines.host.leases import Leases
from penstock.pipelines.host.repeating import repeating
from penstock.platform.clock import now_ms
from penstock.platform.errors import StackError
from penstock.platform.lifecycle import Asked, wait_for

if TYPE_CHECKING:
    from penstock.pipelines.batch.right import Right
    from penstock.platform.control import ControlStore

DRAIN_SECONDS = 120.0
LEASE_MS = 30_000


class Standstill(msgspec.Struct, frozen=True):
    """What a stream is to be again, after what, and the revision of the wish by which it was drained for that."""

    desired: Desired
    what: str
    revision: int


@contextmanager
def standing_still(
    store: "ControlStore", streams: Path, stream: str, what: str, tell: Callable[[str], None]
) -> "Iterator[Right]":
    """Drain a stream and hold its lease; afterwards it is again what it was wanted to be.

    What somebody asks of it meanwhile holds: it is that afterwards. A stream whose switch was cut off stays
    drained: its tables are of two kinds until the replay is finished. So does one whose work was killed, until
    that is done again: then it is what it was wanted to be before the first.
    """
    wish = store.desired().get(stream)
    if wish is not None and wish.held:
        tell("draining the stream")
        drained, asked = _draining(store, streams, wish, what)
        with _again(store, streams, stream, drained):
            wait_for(store, asked, DRAIN_SECONDS)
            with _held(store, streams, stream, what) as right:
                yield right
        return
    # Who holds it still now, if anybody does, has written down what it is to be: first have the lease.
    with _held(store, streams, stream, what) as right:
        left = standstill(streams, stream, wish)
        after = None if left is None else replace(left, what=what)
        if after is not None:
            _write(streams, stream, after)
        with _again(store, streams, stream, after):
            yield right


def standstill(streams: Path, stream: str, wish: DesiredState | None) -> Standstill | None:
    """For what a stream stands still, or stood when that was killed; None where nobody left it so."""
    path = _place(streams, stream)
    if not path.exists():
        return None
    found = msgspec.json.decode(path.read_bytes(), type=Standstill)
    return found if wish is not None and wish.revision == found.revision else None


def _draining(
    store: "ControlStore", streams: Path, wish: DesiredState, what: str
) -> tuple[Standstill, Asked]:
    """Ask for it to be drained, unless somebody asked anything since; what it is to be again is written first."""
    after, now = Standstill(wish.desired, what, wish.revision + 1), now_ms()
    _write(streams, wish.stream, after)
    drained = store.desire_after(wish, Desired.DRAINED, now)
    if drained is None:
        raise StackError(
            f"somebody asked something of {wish.stream} as {what} was about to drain it: "
            "`penstock status` shows what is wanted; then try again"
        )
    return after, Asked(drained, now, 0, anew=False)


@contextmanager
def _again(store: "ControlStore", streams: Path, stream: str, after: Standstill | None) -> Iterator[None]:
    """Have the stream be what it was wanted to be, unless somebody asked for something since it was drained."""
    try:
        yield
    finally:
        if after is not None and not switching(streams, stream):
            drained = DesiredState(stream, Desired.DRAINED, after.revision)
            store.desire_after(drained, after.desired, now_ms())
            _place(streams, stream).unlink(missing_ok=True)


def _write(streams: Path, stream: str, after: Standstill) -> None:
    path = _place(streams, stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(msgspec.json.encode(after))
    partial.replace(path)


def _place(streams: Path, stream: str) -> Path:
    return streams / stream / "standstill.json"


@contextmanager
def _held(store: "ControlStore", streams: Path, stream: str, what: str) -> "Iterator[Right]":
    """The right to write a stream that stands still."""
    from penstock.pipelines.batch.right import Right

    leases = Leases(store, what, now_ms, LEASE_MS)
    lease = leases.acquire(stream)
    if lease is None:
        holder = store.holder(stream)
        raise StackError(
            f"{stream} is held by {holder.holder if holder else 'somebody'}, and must stand still for {what}: "
            f"`penstock stream drain {stream}`, then try again"
        )
    try:
        # While the store is away the lease may run out: then it is lost, and `Right` says so.
        with repeating(LEASE_MS / 3000, leases.renew, "heartbeat of a standstill"):
            _tell_rest(store, streams, stream)
            yield Right(stream, lease.epoch, lambda: leases.holds(lease))
    finally:
        leases.release(lease)


def _tell_rest(store: "ControlStore", streams: Path, stream: str) -> None:
    """Tell the store what a host could not tell any more: what comes next is told with a higher number."""
    from penstock.pipelines.batch.journal import kept_outcomes
    from penstock.pipelines.host.telling import batch_record

    last = store.last_batch(stream)
    journal = folder_of_stream(streams, stream) / "journal"
    with suppress(JournalError):  # of an earlier version, which a replay is the way out of
        for outcome in kept_outcomes(journal, -1 if last is None else last.batch_id):
            store.record_batch(batch_record(stream, outcome))
