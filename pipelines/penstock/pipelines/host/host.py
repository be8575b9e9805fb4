"""The stream host: makes the streams that should run here run, one Spark session for all of them.

What should run is in the control store; the host looks there twice a second. A stream runs while the host holds
its lease, and stops writing the moment it does not. One stream's failure is its own: it is tried again after a
while, and parked when that does not help, and the others go on. One that is parked is taken up again when somebody
asks for it, or when what it is written in changes. While the control store does not answer, all stays as it is.
When Spark itself is gone the host ends, for whoever started it to start it again.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace

from penstock.pipelines.batch.engine import Right
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.errors import FencedError, HostError
from penstock.pipelines.host.control import (
    BatchRecord,
    Control,
    Desired,
    DesiredState,
    HostReport,
    Lease,
    StreamHealth,
)
from penstock.pipelines.host.leases import Clock, Leases
from penstock.pipelines.host.retry import PARK_AFTER, Failures
from penstock.pipelines.host.running import Make, Parked, Place, Running
from penstock.pipelines.host.work import working_on

log = logging.getLogger(__name__)


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
        park_after: int = PARK_AFTER,
        address: str = "",
        written: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.name = name
        self._report = HostReport(name, address, clock(), clock())
        self._control = control
        self._make = make
        self._clock = clock
        self._alive = alive
        self._leases = Leases(control, name, clock, lease_ms)
        self._beat_every_s = lease_ms / 3000
        self._look_every_s = look_every_s
        self._park_after = park_after
        self._written = written
        self._places: dict[str, Place] = {}
        self._failures: dict[str, Failures] = {}
        self._parked: dict[str, Parked] = {}
        self._trouble = ""
        self._waits: set[str] = set()
        self._health: dict[str, StreamHealth] = {}

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; then every stream is drained and its lease given back."""
        heart = threading.Thread(target=self._beat, args=(stop,), name="heartbeat", daemon=True)
        self._control.report_host(self._report)
        heart.start()
        try:
            while not stop.is_set():
                self._try_to_look()
                stop.wait(self._look_every_s)
        finally:
            stop.set()
            for stream in list(self._places):
                self._leave(stream, "stopped", "the host was stopped")
            heart.join()

    def _try_to_look(self) -> None:
        """Look; where the control store does not answer, leave everything as it is until the next look."""
        try:
            self.look()
        except HostError:
            raise
        except Exception as problem:
            if str(problem) != self._trouble:
                log.exception("looked in vain, and goes on with what runs")
            self._trouble = str(problem)
        else:
            self._trouble = ""

    def look(self) -> None:
        """Compare what should run with what does, and act on each difference."""
        if not self._alive():
            raise HostError("Spark has ended; the host ends too, and begins again from the last batch")
        wanted = self._control.desired()
        for stream in list(self._places):
            self._look_after(stream)
        for stream, wish in wanted.items():
            if stream in self._places:
                self._follow(stream, wish)
            elif wish.held:
                self._begin(stream, wish)
        for stream in [name for name in self._places if name not in wanted]:
            self._leave(stream, "stopped", "it is no longer asked for")

    def _follow(self, stream: str, wish: DesiredState) -> None:
        """Bring about a wish for a stream that is here."""
        place = self._places[stream]
        if not wish.held:
            self._leave(stream, wish.desired.value, "", now=wish.desired is Desired.STOPPED)
        elif wish.revision == place.wish.revision:
            return
        elif wish.desired is place.wish.desired:
            self._leave(stream, "stopped", "it is started again")
            self._begin(stream, wish)
        else:
            self._change(stream, place, wish)

    def _change(self, stream: str, place: Place, wish: DesiredState) -> None:
        """Pause a stream, or have it read again."""
        try:
            place.stream.pause() if wish.desired is Desired.PAUSED else place.stream.resume()
        except Exception as problem:  # noqa: BLE001  # one stream's failure, whatever it is, is its own
            self._give_up(stream, problem)
        else:
            place.wish = wish
            self._say(stream, wish.desired.value, "")

    def _begin(self, stream: str, wish: DesiredState) -> None:
        if stream in self._parked:
            if self._parked[stream] == Parked(wish.revision, self._written(stream)):
                return
            # Somebody asked again, or what it is written in has changed.
            del self._parked[stream]
            self._failures.pop(stream, None)
            self._health.pop(stream, None)
        if self._clock() < self._failures.get(stream, Failures()).retry_at_ms:
            return
        lease = self._leases.acquire(stream)
        if lease is None:
            self._wait_for(stream)
            return
        self._waits.discard(stream)
        self._start(stream, wish, lease)

    def _wait_for(self, stream: str) -> None:
        """Say once that another host has a stream. Its health is that host's to report."""
        if stream not in self._waits:
            self._waits.add(stream)
            self._health.pop(stream, None)
            holder = self._control.holder(stream)
            with working_on(stream):
                log.info("waits: %s has it", holder.holder if holder else "another host")

    def _start(self, stream: str, wish: DesiredState, lease: Lease) -> None:
        right = Right(stream, lease.epoch, lambda: self._leases.holds(lease))
        running: Running | None = None
        written = self._written(stream)
        try:
            running = self._make(stream, right, lambda outcome: self._told(stream, outcome))
            running.start(reading=wish.desired is Desired.RUNNING)
        except Exception as problem:  # noqa: BLE001  # one stream's failure, whatever it is, is its own
            at = running.at() if running else ""
            self._failed(stream, lease, Parked(wish.revision, written), problem, at)
        else:
            self._places[stream] = Place(lease, running, wish, written)
            self._say(stream, wish.desired.value, "")

    def _look_after(self, stream: str) -> None:
        place = self._places[stream]
        failure = place.stream.failure()
        if failure is None and not self._leases.holds(place.lease):
            failure = FencedError(stream, place.lease.epoch)
        if failure is not None:
            self._give_up(stream, failure)

    def _give_up(self, stream: str, problem: BaseException) -> None:
        place = self._places.pop(stream)
        at = place.stream.at()
        place.stream.drain()
        self._failed(stream, place.lease, Parked(place.wish.revision, place.written), problem, at)

    def _failed(self, stream: str, lease: Lease, began: Parked, problem: BaseException, at: str) -> None:
        self._leases.release(lease)
        if isinstance(problem, FencedError):
            with working_on(stream):
                log.warning("%s", problem)
            return
        failures = self._failures.get(stream, Failures()).again(self._clock(), problem)
        self._failures[stream] = failures
        with working_on(stream):
            log.error("failed%s: %s", f" at {at}" if at else "", problem, exc_info=problem)
        what = f"{type(problem).__name__}: {problem}".split("\n\n")[0] + (f" ({at})" if at else "")
        if failures.is_enough(self._park_after):
            self._parked[stream] = began
            tries = "" if failures.hopeless else f"; given up after {failures.count} tries"
            again = f"`penstock stream start {stream}` tries again, and so does a change of its files"
            self._say(stream, "parked", f"{what.rstrip('.')}{tries}. {again}")
        else:
            self._say(stream, "failed", what)

    def _leave(self, stream: str, state: str, reason: str, *, now: bool = False) -> None:
        place = self._places.pop(stream)
        place.stream.stop() if now else place.stream.drain()
        self._leases.release(place.lease)
        self._say(stream, state, reason)

    def _told(self, stream: str, outcome: Outcome) -> None:
        self._control.record_batch(batch_record(stream, outcome))

    def _say(self, stream: str, state: str, reason: str) -> None:
        """Report health, where it is news."""
        before = self._health.get(stream)
        if before is None or (before.state, before.reason) != (state, reason):
            health = StreamHealth(stream, state, reason, self._clock())
            with working_on(stream):
                log.info("is %s%s", state, f": {reason}" if reason else "")
            self._control.report_health(health)
            self._health[stream] = health

    def _beat(self, stop: threading.Event) -> None:
        while not stop.wait(self._beat_every_s):
            try:
                self._leases.renew()
                self._control.report_host(replace(self._report, seen_at_ms=self._clock()))
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
        state_rows=outcome.state_rows,
        state=outcome.state_sizes,
    )
