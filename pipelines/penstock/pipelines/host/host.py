"""The stream host: makes the streams that should run here run, one Spark session for all of them.

What should run is in the control store; the host looks there twice a second. A stream runs while the host holds
its lease, and stops writing the moment it does not. One stream's failure is its own: it is tried again after a
while, and the others go on. When Spark itself is gone the host ends, for whoever started it to start it again.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from penstock.pipelines.batch.engine import Right
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.errors import FencedError, HostError
from penstock.pipelines.host.control import BatchRecord, Control, Desired, Lease, StreamHealth
from penstock.pipelines.host.leases import Clock, Leases
from penstock.pipelines.host.retry import Failures

log = logging.getLogger(__name__)


class Running(Protocol):
    """A stream at work, as the host sees it."""

    def start(self) -> None:
        """Begin."""

    def failure(self) -> BaseException | None:
        """Why it no longer runs; None while it does."""

    def drain(self) -> None:
        """Finish the batch at work, and stop."""


Make = Callable[[str, Right, Callable[[Outcome], None]], Running]
"""Makes a stream ready to be started."""


@dataclass
class Place:
    """What the host has of one stream at the moment."""

    lease: Lease
    stream: Running


class Host:
    """Runs streams until it is told to stop. `alive` says whether Spark is still there."""

    def __init__(
        self,
        name: str,
        control: Control,
        make: Make,
        clock: Clock,
        *,
        alive: Callable[[], bool],
        lease_ms: int = 15_000,
        look_every_s: float = 0.5,
    ) -> None:
        self.name = name
        self._control = control
        self._make = make
        self._clock = clock
        self._alive = alive
        self._leases = Leases(control, name, clock, lease_ms)
        self._beat_every_s = lease_ms / 3000
        self._look_every_s = look_every_s
        self._places: dict[str, Place] = {}
        self._failures: dict[str, Failures] = {}
        self._health: dict[str, StreamHealth] = {}

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; then every stream is drained and its lease given back."""
        heart = threading.Thread(target=self._beat, args=(stop,), name="heartbeat", daemon=True)
        heart.start()
        try:
            while not stop.is_set():
                self.look()
                stop.wait(self._look_every_s)
        finally:
            stop.set()
            for stream in list(self._places):
                self._leave(stream, "stopped", "the host was stopped")
            heart.join()

    def look(self) -> None:
        """Compare what should run with what does, and act on each difference."""
        if not self._alive():
            raise HostError("Spark has ended; the host ends too, and begins again from the last batch")
        wanted = self._control.desired()
        for stream in list(self._places):
            self._look_after(stream)
        for stream, state in wanted.items():
            if state.desired is Desired.RUNNING and stream not in self._places:
                self._begin(stream)
            elif state.desired is not Desired.RUNNING and stream in self._places:
                self._leave(stream, state.desired.value, "")
        for stream in [name for name in self._places if name not in wanted]:
            self._leave(stream, "stopped", "it is no longer asked for")

    def _begin(self, stream: str) -> None:
        if self._clock() < self._failures.get(stream, Failures()).retry_at_ms:
            return
        lease = self._leases.acquire(stream)
        if lease is None:
            holder = self._control.holder(stream)
            self._say(stream, "waiting", f"{holder.holder} has the lease" if holder else "the lease is taken")
            return
        right = Right(stream, lease.epoch, lambda: self._leases.holds(lease))
        try:
            running = self._make(stream, right, lambda outcome: self._told(stream, outcome))
            running.start()
        except Exception as problem:  # noqa: BLE001  # one stream's failure, whatever it is, is its own
            self._failed(stream, lease, problem)
        else:
            self._places[stream] = Place(lease, running)
            self._say(stream, "running", "")

    def _look_after(self, stream: str) -> None:
        place = self._places[stream]
        failure = place.stream.failure()
        if failure is None and not self._leases.holds(place.lease):
            failure = FencedError(stream, place.lease.epoch)
        if failure is not None:
            del self._places[stream]
            place.stream.drain()
            self._failed(stream, place.lease, failure)

    def _failed(self, stream: str, lease: Lease, problem: BaseException) -> None:
        self._leases.release(lease)
        self._failures[stream] = self._failures.get(stream, Failures()).again(self._clock())
        log.error("stream %s failed: %s", stream, problem, exc_info=problem)
        self._say(stream, "failed", f"{type(problem).__name__}: {problem}".split("\n\n")[0])

    def _leave(self, stream: str, state: str, reason: str) -> None:
        place = self._places.pop(stream)
        place.stream.drain()
        self._leases.release(place.lease)
        self._say(stream, state, reason)

    def _told(self, stream: str, outcome: Outcome) -> None:
        self._control.record_batch(batch_record(stream, outcome))

    def _say(self, stream: str, state: str, reason: str) -> None:
        """Report health, where it is news."""
        before = self._health.get(stream)
        if before is None or (before.state, before.reason) != (state, reason):
            health = StreamHealth(stream, state, reason, self._clock())
            self._health[stream] = health
            log.info("stream %s is %s%s", stream, state, f": {reason}" if reason else "")
            self._control.report_health(health)

    def _beat(self, stop: threading.Event) -> None:
        while not stop.wait(self._beat_every_s):
            try:
                self._leases.renew()
            except Exception:
                # The store may be away for a while; a lease that runs out meanwhile is lost by itself.
                log.exception("the leases could not be renewed")


def batch_record(stream: str, outcome: Outcome) -> BatchRecord:
    """What the control store keeps of a batch."""
    watermark = outcome.watermark.value
    return BatchRecord(
        stream=stream,
        batch_id=outcome.batch_id,
        epoch=outcome.epoch,
        kind=outcome.kind,
        clock_ms=outcome.clock,
        watermark_ms=watermark if outcome.watermark.known else None,
        accounts=outcome.accounts,
        panes=outcome.panes,
        rows=sum(outcome.panes.values()) + outcome.archived,
        lag_records=outcome.lag_records,
        durations_ms=outcome.durations_ms,
    )
