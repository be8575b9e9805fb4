"""The stream host: makes the streams that should run here run, one Spark session for all of them.

What should run is in the control store; the host looks there twice a second. A stream runs while the host holds
its lease, and stops writing the moment it does not. One stream's failure is its own: it is tried again after a
while, and parked when that does not help, and the others go on. So is its slowness: what is asked of a stream is
done beside what is asked of the others. One that is parked is taken up again when somebody asks for it, or when
what it is written in changes. While the control store does not answer, all stays as it is, and what there is to
tell is told later. When Spark itself is gone the host ends, for whoever started it to start it again.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

from penstock.pipelines.errors import HostError
from penstock.pipelines.host.control import Control, DesiredState, HostReport
from penstock.pipelines.host.leases import Clock, Leases
from penstock.pipelines.host.repeating import repeating
from penstock.pipelines.host.retry import PARK_AFTER
from penstock.pipelines.host.running import Make
from penstock.pipelines.host.telling import Telling
from penstock.pipelines.host.tenant import Desk, Tenant

log = logging.getLogger(__name__)

AT_ONCE = 64
"""How many streams may be at something slow at the same time; the next ones wait."""


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
        patience_s: float = 0.5,
        park_after: int = PARK_AFTER,
        address: str = "",
        written: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.name = name
        self._report = HostReport(name, address, clock(), clock())
        self._control = control
        self._clock = clock
        self._alive = alive
        self._leases = Leases(control, name, clock, lease_ms)
        self._beat_every_s = lease_ms / 3000
        self._look_every_s = look_every_s
        self._patience_s = patience_s
        self._desk = Desk(control, self._leases, Telling(control), make, clock, written, park_after)
        self._tenants: dict[str, Tenant] = {}
        self._steps: dict[str, Future[None]] = {}
        self._workers = ThreadPoolExecutor(AT_ONCE, "stream")
        self._trouble = ""

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; then every stream is drained, all at once, and its lease given back."""
        self._control.report_host(self._report)
        with repeating(self._beat_every_s, self._beat, "heartbeat"):
            try:
                while not stop.is_set():
                    self._try_to_look()
                    stop.wait(self._look_every_s)
            finally:
                self._leave_all()

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
        """Compare what should run with what does, and act on each difference, on each stream's own.

        Returns when that is done, or with a stream that is slow while it is at it: no look waits for it again.
        """
        if not self._alive():
            raise HostError("Spark has ended; the host ends too, and begins again from the last batch")
        wanted = self._control.desired()
        ended = [self._steps.pop(stream) for stream, step in list(self._steps.items()) if step.done()]
        begun = [
            self._begin(stream, wanted.get(stream))
            for stream in [*self._tenants, *(name for name in wanted if name not in self._tenants)]
            if stream not in self._steps and self._concerns(stream, wanted.get(stream))
        ]
        wait(begun, self._patience_s)
        for step in [*ended, *(each for each in begun if each.done())]:
            step.result()

    def _concerns(self, stream: str, wish: DesiredState | None) -> bool:
        """Whether there is anything to do about a stream: it is here, failed here, or should be somewhere."""
        tenant = self._tenants.get(stream)
        return (wish is not None and wish.held) or (tenant is not None and (tenant.is_here or tenant.failed))

    def _begin(self, stream: str, wish: DesiredState | None) -> Future[None]:
        tenant = self._tenants.setdefault(stream, Tenant(stream, self._desk))
        self._steps[stream] = self._workers.submit(tenant.look, wish)
        return self._steps[stream]

    def _leave_all(self) -> None:
        tenants = self._tenants.values()
        leaving = [self._workers.submit(each.leave, "stopped", "the host was stopped") for each in tenants]
        self._workers.shutdown()
        for each in leaving:
            if problem := each.exception():
                log.error("a stream could not be left in order", exc_info=problem)

    def _beat(self) -> None:
        # While the store is away a lease runs out, and is lost by itself.
        self._leases.renew()
        self._control.report_host(replace(self._report, seen_at_ms=self._clock()))
