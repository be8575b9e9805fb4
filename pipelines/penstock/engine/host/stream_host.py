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

from penstock.core.periodic import run_periodically
from penstock.engine.errors import HostError
from penstock.engine.host.control import DesiredState, HostControl, HostReport
from penstock.engine.host.control_reporter import ControlReporter
from penstock.engine.host.leases import Clock, LeaseKeeper
from penstock.engine.host.restart_policy import MAX_START_ATTEMPTS
from penstock.engine.host.stream_handle import StreamFactory
from penstock.engine.host.stream_supervisor import HostContext, StreamSupervisor

log = logging.getLogger(__name__)

MAX_PARALLEL_STEPS = 64
"""How many streams may be at something slow at the same time; the next ones wait."""


class StreamHost:
    """Runs streams until it is told to stop. `alive` says whether Spark is still there."""

    def __init__(
        self,
        name: str,
        control: HostControl,
        create_stream: StreamFactory,
        clock: Clock,
        *,
        is_spark_alive: Callable[[], bool],
        lease_ttl_ms: int = 15_000,
        poll_interval_s: float = 0.5,
        step_wait_s: float = 0.5,
        max_attempts: int = MAX_START_ATTEMPTS,
        address: str = "",
        read_definition_version: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.name = name
        self._report = HostReport(name, address, clock(), clock())
        self._control = control
        self._clock = clock
        self._is_spark_alive = is_spark_alive
        self._leases = LeaseKeeper(control, name, clock, lease_ttl_ms)
        self._heartbeat_interval_s = lease_ttl_ms / 3000
        self._poll_interval_s = poll_interval_s
        self._step_wait_s = step_wait_s
        self._context = HostContext(
            control,
            self._leases,
            ControlReporter(control),
            create_stream,
            clock,
            read_definition_version,
            max_attempts,
        )
        self._supervisors: dict[str, StreamSupervisor] = {}
        self._steps: dict[str, Future[None]] = {}
        self._workers = ThreadPoolExecutor(MAX_PARALLEL_STEPS, "stream")
        self._last_problem = ""

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; then every stream is drained, all at once, and its lease given back."""
        self._control.report_host(self._report)
        with run_periodically(self._heartbeat_interval_s, self._send_heartbeat, "heartbeat"):
            try:
                while not stop.is_set():
                    self._try_reconcile()
                    stop.wait(self._poll_interval_s)
            finally:
                self._stop_all()

    def _try_reconcile(self) -> None:
        """Look; where the control store does not answer, leave everything as it is until the next look."""
        try:
            self.reconcile()
        except HostError:
            raise
        except Exception as error:
            if str(error) != self._last_problem:
                log.exception("looked in vain, and goes on with what runs")
            self._last_problem = str(error)
        else:
            self._last_problem = ""

    def reconcile(self) -> None:
        """Compare what should run with what does, and act on each difference, on each stream's own.

        Returns when that is done, or with a stream that is slow while it is at it: no look waits for it again.
        """
        if not self._is_spark_alive():
            raise HostError("Spark has ended; the host ends too, and begins again from the last batch")
        desired_states = self._control.read_desired_states()
        finished_steps = [
            self._steps.pop(stream) for stream, step in list(self._steps.items()) if step.done()
        ]
        started_steps = [
            self._start_step(stream, desired_states.get(stream))
            for stream in [
                *self._supervisors,
                *(name for name in desired_states if name not in self._supervisors),
            ]
            if stream not in self._steps and self._needs_attention(stream, desired_states.get(stream))
        ]
        wait(started_steps, self._step_wait_s)
        for step in [
            *finished_steps,
            *(started_step for started_step in started_steps if started_step.done()),
        ]:
            step.result()

    def _needs_attention(self, stream: str, desired_state: DesiredState | None) -> bool:
        """Whether there is anything to do about a stream: it is here, failed here, or should be somewhere."""
        supervisor = self._supervisors.get(stream)
        return (desired_state is not None and desired_state.needs_host) or (
            supervisor is not None and (supervisor.is_hosted or supervisor.has_failed)
        )

    def _start_step(self, stream: str, desired_state: DesiredState | None) -> Future[None]:
        supervisor = self._supervisors.setdefault(stream, StreamSupervisor(stream, self._context))
        self._steps[stream] = self._workers.submit(supervisor.reconcile, desired_state)
        return self._steps[stream]

    def _stop_all(self) -> None:
        supervisors = self._supervisors.values()
        stop_steps = [
            self._workers.submit(item.release_stream, "stopped", "the host was stopped")
            for item in supervisors
        ]
        self._workers.shutdown()
        for item in stop_steps:
            if error := item.exception():
                log.error("a stream could not be left in order", exc_info=error)

    def _send_heartbeat(self) -> None:
        # While the store is away a lease runs out, and is lost by itself.
        self._leases.renew()
        self._control.report_host(replace(self._report, seen_at_ms=self._clock()))
