"""A stream that stands still while somebody else than a host works on what it keeps.

What it was wanted to be is written down before it is drained, beside its folders: whoever is killed meanwhile
leaves it to the next one, and to `penstock status`.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from penstock.pipelines.errors import JournalError
from penstock.pipelines.host.control import Desired, DesiredState
from penstock.pipelines.host.folders import folder_of_stream, switching
from penstock.pipelines.host.leases import Leases
from penstock.platform.clock import now_ms
from penstock.platform.errors import StackError
from penstock.platform.lifecycle import VERBS, ask, wait_for

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

    A stream whose switch was cut off stays drained: its tables are of two kinds until the replay is finished. So
    does one whose work was killed, until that is done again: then it is what it was wanted to be before the first.
    """
    wish = store.desired().get(stream)
    after = _afterwards(streams, stream, what, wish)
    try:
        if wish is not None and wish.held:
            tell("draining the stream")
            wait_for(store, ask(store, stream, VERBS["drain"], (stream,)), DRAIN_SECONDS)
        with _held(store, streams, stream, what) as right:
            yield right
    finally:
        if after is not None and not switching(streams, stream):
            store.desire(stream, after.desired, now_ms())
            _place(streams, stream).unlink(missing_ok=True)


def standstill(streams: Path, stream: str, wish: DesiredState | None) -> Standstill | None:
    """For what a stream stands still, or stood when that was killed; None where nobody left it so."""
    path = _place(streams, stream)
    if not path.exists():
        return None
    found = msgspec.json.decode(path.read_bytes(), type=Standstill)
    return found if wish is not None and wish.revision == found.revision else None


def _afterwards(streams: Path, stream: str, what: str, wish: DesiredState | None) -> Standstill | None:
    """What the stream is to be afterwards, written down; None where it is to stay as it is."""
    if wish is not None and wish.held:
        after = Standstill(wish.desired, what, wish.revision + 1)
    elif before := standstill(streams, stream, wish):
        after = Standstill(before.desired, what, before.revision)
    else:
        return None
    path = _place(streams, stream)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(msgspec.json.encode(after))
    partial.replace(path)
    return after


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
        with _beating(leases):
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


@contextmanager
def _beating(leases: Leases) -> Iterator[None]:
    over = threading.Event()

    def beat() -> None:
        while not over.wait(LEASE_MS / 3000):
            leases.renew()

    heart = threading.Thread(target=beat, name="heartbeat of a standstill", daemon=True)
    heart.start()
    try:
        yield
    finally:
        over.set()
        heart.join()
