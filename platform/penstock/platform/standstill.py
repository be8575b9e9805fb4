"""A stream that stands still while somebody else than a host works on what it keeps."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipelines.host.folders import switching
from penstock.pipelines.host.leases import Leases
from penstock.platform.clock import now_ms
from penstock.platform.errors import StackError
from penstock.platform.lifecycle import VERBS, ask, wait_for

if TYPE_CHECKING:
    from penstock.pipelines.batch.engine import Right
    from penstock.platform.control import ControlStore

DRAIN_SECONDS = 120.0
LEASE_MS = 30_000


@contextmanager
def standing_still(
    store: "ControlStore", streams: Path, stream: str, what: str, tell: Callable[[str], None]
) -> "Iterator[Right]":
    """Drain a stream and hold its lease; afterwards it is again what it was wanted to be.

    A stream whose switch was cut off stays drained: its tables are of two kinds until the replay is finished.
    """
    from penstock.pipelines.batch.engine import Right

    wish = store.desired().get(stream)
    if wish is not None and wish.held:
        tell("draining the stream")
        wait_for(store, ask(store, stream, VERBS["drain"], (stream,)), DRAIN_SECONDS)
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
            yield Right(stream, lease.epoch, lambda: leases.holds(lease))
    finally:
        leases.release(lease)
        if wish is not None and wish.held and not switching(streams, stream):
            store.desire(stream, wish.desired, now_ms())


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
