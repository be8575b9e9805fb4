"""The stream host: runs every stream that should run, in one Spark session.

The control store has the desired states; the host polls it twice a second. A stream runs while the host holds its
lease, and stops writing the moment the lease is lost. Streams fail independently: a failed stream is retried with a
backoff, then fails for good, and the others keep running. They are also independent in time: a slow start or stop
of one stream delays no other. A failed stream starts again when it is requested or its definition changes. While
the control store does not answer, the host changes nothing and reports later. When Spark ends, the host ends too;
its process manager starts it again.
"""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace

from penstock.core.clock import Clock
from penstock.core.periodic import run_periodically
from penstock.engine.errors import HostError
from penstock.engine.host.control import DesiredState, HostControl, HostReport
from penstock.engine.host.control_reporter import ControlReporter
from penstock.engine.host.leases import LeaseKeeper
from penstock.engine.host.stream_handle import StreamFactory
from penstock.engine.host.stream_state import StreamState
from penstock.engine.host.stream_supervisor import HostContext, StreamSupervisor
from penstock.engine.host_settings import STANDALONE_SETTINGS, HostSettings

log = logging.getLogger(__name__)

MAX_PARALLEL_STEPS = 64
"""How many streams may start or stop at the same time; the others wait."""


class StreamHost:
    """Runs streams until `stop` is set. `is_spark_alive` returns whether Spark still runs."""

    def __init__(
        self,
        name: str,
        control: HostControl,
        create_stream: StreamFactory,
        clock: Clock,
        *,
        is_spark_alive: Callable[[], bool],
        settings: HostSettings = STANDALONE_SETTINGS,
        poll_interval_s: float = 0.5,
        step_wait_s: float = 0.5,
        address: str = "",
        read_definition_version: Callable[[str], str] = lambda _: "",
    ) -> None:
        self.name = name
        self._report = HostReport(name, address, clock(), clock())
        self._control = control
        self._clock = clock
        self._is_spark_alive = is_spark_alive
        self._leases = LeaseKeeper(control, name, clock, int(settings.lease_timeout))
        self._heartbeat_interval_s = settings.lease_timeout.seconds / 3
        self._poll_interval_s = poll_interval_s
        self._step_wait_s = step_wait_s
        self._context = HostContext(
            control,
            self._leases,
            ControlReporter(control),
            create_stream,
            clock,
            read_definition_version,
            settings,
        )
        self._supervisors: dict[str, StreamSupervisor] = {}
        self._steps: dict[str, Future[None]] = {}
        self._workers = ThreadPoolExecutor(MAX_PARALLEL_STEPS, "stream")
        self._last_problem = ""

    def run(self, stop: threading.Event) -> None:
        """Run until `stop` is set; then drain all streams in parallel and release their leases."""
        self._control.report_host(self._report)
        with run_periodically(self._heartbeat_interval_s, self._send_heartbeat, "heartbeat"):
            try:
                while not stop.is_set():
                    self._try_reconcile()
                    stop.wait(self._poll_interval_s)
            finally:
                self._stop_all()

    def _try_reconcile(self) -> None:
        """Reconcile; if the control store does not answer, change nothing until the next poll."""
        try:
            self.reconcile()
        except HostError:
            raise
        except Exception as error:
            if str(error) != self._last_problem:
                log.exception("Reconciliation failed; running streams are unaffected")
            self._last_problem = str(error)
        else:
            self._last_problem = ""

    def reconcile(self) -> None:
        """Compare the desired and the actual state of each stream, and start the steps that bring them together.

        Waits for these steps for a short time only. A stream whose step takes longer is skipped until it is done.
        """
        if not self._is_spark_alive():
            raise HostError(
                "Spark ended. The host ends too and resumes from the last batch when it starts again"
            )
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
        """Whether the stream runs here, failed here, or should run."""
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
            self._workers.submit(item.release_stream, StreamState.STOPPED, "the host was stopped")
            for item in supervisors
        ]
        self._workers.shutdown()
        for item in stop_steps:
            if error := item.exception():
                log.error("Stream shutdown failed", exc_info=error)

    def _send_heartbeat(self) -> None:
        # While the store is away, leases expire by themselves.
        self._leases.renew()
        self._control.report_host(replace(self._report, seen_at_ms=self._clock()))
