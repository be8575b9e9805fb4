"""Supervises one stream of a host: starts, pauses, stops and restarts it.

A stream belongs to this host until it has stopped. A stream that does not stop loses its lease, so it writes
nothing, and the supervisor retries the stop. The control store decides who holds the lease. A failure affects this
stream only.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from penstock.core.clock import Clock
from penstock.core.log_context import bind_log_context
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import WriterFencedError
from penstock.engine.host.control import DesiredRunState, DesiredState, HostControl, Lease, StreamHealth
from penstock.engine.host.control_reporter import ControlReporter, to_batch_record
from penstock.engine.host.error_report import describe_user_traceback, summarize_error
from penstock.engine.host.leases import LeaseKeeper
from penstock.engine.host.restart_policy import FailureHistory
from penstock.engine.host.stream_handle import FailedAttempt, HostedStream, StreamFactory, StreamHandle
from penstock.engine.host.stream_state import StreamState
from penstock.engine.host_settings import HostSettings

log = logging.getLogger(__name__)

DOWN_STATES = (StreamState.RETRYING, StreamState.FAILED)
REPORT_WAIT_S = 2.0
"""How long a stop waits until the store has the stream's batches; the next start reports the rest."""


@dataclass(frozen=True)
class HostContext:
    """What all streams of a host share."""

    control: HostControl
    leases: LeaseKeeper
    reporter: ControlReporter
    create_stream: StreamFactory
    clock: Clock
    read_definition_version: Callable[[str], str]
    settings: HostSettings


class StreamSupervisor:
    """One stream of a host. Safe to use from several threads; calls run one at a time."""

    def __init__(self, stream: str, context: HostContext) -> None:
        self.stream = stream
        self._context = context
        self._hosted: HostedStream | None = None
        self._failures = FailureHistory()
        self._stop_failures = FailureHistory()
        self._failed_attempt: FailedAttempt | None = None
        self._is_standby = False
        self._health: StreamHealth | None = None
        self._epoch = 0
        self._failed_revision = 0
        self._lock = threading.Lock()

    @property
    def is_hosted(self) -> bool:
        """Whether this host runs the stream."""
        return self._hosted is not None

    @property
    def has_failed(self) -> bool:
        """Whether this host last reported the stream as failed."""
        return self._health is not None and self._health.state in DOWN_STATES

    def reconcile(self, desired_state: DesiredState | None) -> None:
        """Compare the desired with the actual state, and act on the difference."""
        with self._lock, bind_log_context(self.stream):
            if self._stop_failures.count:
                self._retry_stop(desired_state)
            else:
                self._check_health()
            if self._stop_failures.count:
                return
            if self._hosted is not None:
                self._apply_desired_state(self._hosted, desired_state)
            elif desired_state is not None and desired_state.needs_host:
                self._try_start(desired_state)
            elif self.has_failed:
                self._clear_failure(_resting_state(desired_state))

    def release_stream(self, state: StreamState, reason: str) -> None:
        """Finish the current batch and stop the stream; do nothing if it does not run here."""
        with self._lock, bind_log_context(self.stream):
            if self._hosted is not None:
                self._stop_and_report(self._hosted, state, reason)

    def _check_health(self) -> None:
        hosted = self._hosted
        if hosted is None:
            return
        failure = hosted.handle.failure()
        if failure is None and not self._context.leases.is_held(hosted.lease):
            failure = WriterFencedError(self.stream, hosted.lease.epoch)
        if failure is not None:
            self._handle_failure(hosted, failure)

    def _apply_desired_state(self, hosted: HostedStream, desired_state: DesiredState | None) -> None:
        """Bring a stream of this host to its desired state."""
        if desired_state is None:
            self._stop_and_report(hosted, StreamState.STOPPED, "it is no longer requested")
        elif not desired_state.needs_host:
            self._stop_and_report(
                hosted,
                desired_state.desired.as_state,
                "",
                immediately=desired_state.desired is DesiredRunState.STOPPED,
            )
        elif desired_state.revision == hosted.desired_state.revision:
            return
        elif (
            desired_state.desired is hosted.desired_state.desired
            or desired_state.revision > hosted.desired_state.revision + 1
        ):
            if self._stop_and_report(hosted, StreamState.STOPPED, "it is restarted"):
                self._try_start(desired_state)
        else:
            self._pause_or_resume(hosted, desired_state)

    def _retry_stop(self, desired_state: DesiredState | None) -> None:
        """Retry the stop of a stream that did not stop."""
        if self._hosted is None or self._context.clock() < self._stop_failures.retry_at_ms:
            return
        if self._stop_stream(self._hosted) and not (desired_state is not None and desired_state.needs_host):
            self._report_health(_resting_state(desired_state), "")

    def _pause_or_resume(self, hosted: HostedStream, desired_state: DesiredState) -> None:
        """Pause or resume a stream."""
        try:
            hosted.handle.pause() if desired_state.desired is DesiredRunState.PAUSED else hosted.handle.resume()
        except Exception as error:  # noqa: BLE001  # any failure affects this stream only
            self._handle_failure(hosted, error)
        else:
            hosted.desired_state = desired_state
            self._report_health(desired_state.desired.as_state, "", hosted.started_ms)

    def _clear_failure(self, state: StreamState) -> None:
        """Forget the failure of a stream that should no longer run."""
        self._failed_attempt, self._failures = None, FailureHistory()
        self._report_health(state, "")

    def _try_start(self, desired_state: DesiredState) -> None:
        if self._failed_attempt is not None:
            if self._failed_attempt == FailedAttempt(
                desired_state.revision, self._context.read_definition_version(self.stream)
            ):
                return
            # The stream was requested again, or its definition changed.
            self._failed_attempt, self._failures, self._health = None, FailureHistory(), None
        if self._failures.count and desired_state.revision != self._failed_revision:
            self._failures = FailureHistory()  # a new request does not wait for the backoff
        if self._context.clock() < self._failures.retry_at_ms:
            return
        lease = self._context.leases.acquire(self.stream)
        if lease is None:
            self._stand_by()
            return
        self._is_standby, self._epoch = False, lease.epoch
        self._start_stream(desired_state, lease)

    def _stand_by(self) -> None:
        """Log once that another host has the stream. That host reports its health."""
        if not self._is_standby:
            self._is_standby, self._health = True, None
            held_by = self._context.control.read_lease(self.stream)
            log.info("Waiting for lease (holder=%s)", held_by.holder if held_by else "another host")

    def _start_stream(self, desired_state: DesiredState, lease: Lease) -> None:
        fence = WriteFence(self.stream, lease.epoch, lambda: self._context.leases.is_held(lease))
        handle: StreamHandle | None = None
        started_ms = (
            self._context.clock()
        )  # before the definition is read: a later change is newer than the start
        definition_version = self._context.read_definition_version(self.stream)
        last_reported = self._context.reporter.start_stream(self.stream)
        try:
            handle = self._context.create_stream(self.stream, fence, self._report_outcome)
            for outcome in handle.read_outcomes_after(last_reported):  # an earlier host did not report these
                self._report_outcome(outcome)
            handle.start(reading=desired_state.desired is DesiredRunState.RUNNING)
        except Exception as error:  # noqa: BLE001  # any failure affects this stream only
            current_batch, lease_held = handle.describe_current_batch() if handle else "", fence.is_held()
            self._context.leases.release(lease)
            self._record_failure(
                FailedAttempt(desired_state.revision, definition_version),
                error,
                current_batch,
                lease_held=lease_held,
            )
        else:
            self._hosted = HostedStream(lease, handle, desired_state, definition_version, started_ms)
            self._report_health(desired_state.desired.as_state, "", started_ms)

    def _stop_and_report(
        self, hosted: HostedStream, state: StreamState, reason: str, *, immediately: bool = False
    ) -> bool:
        if stopped := self._stop_stream(hosted, immediately=immediately):
            self._report_health(state, reason)
        return stopped

    def _handle_failure(self, hosted: HostedStream, error: BaseException) -> None:
        current_batch = hosted.handle.describe_current_batch()
        lease_held = self._context.leases.is_held(hosted.lease)
        if self._stop_stream(hosted):
            self._record_failure(
                FailedAttempt(hosted.desired_state.revision, hosted.definition_version),
                error,
                current_batch,
                lease_held=lease_held,
            )
        else:
            log.error("Stream failed before it was stopped: %s", error, exc_info=error)

    def _stop_stream(self, hosted: HostedStream, *, immediately: bool = False) -> bool:
        """Stop the stream and release its lease. A stream that does not stop stays here without a lease."""
        try:
            hosted.handle.stop() if immediately else hosted.handle.drain()
        except Exception as error:
            self._stop_failures = self._stop_failures.add_failure(self._context.clock())
            log.exception("Stop failed; retrying (the stream writes nothing)")
            self._report_health(StreamState.RETRYING, f"it could not be stopped: {summarize_error(error)}")
            return False
        else:
            self._hosted, self._stop_failures = None, FailureHistory()
            return True
        finally:
            self._context.reporter.wait_until_reported(self.stream, REPORT_WAIT_S)
            self._context.leases.release(hosted.lease)

    def _record_failure(
        self, attempt: FailedAttempt, error: BaseException, current_batch: str, *, lease_held: bool
    ) -> None:
        if isinstance(error, WriterFencedError) or not lease_held:
            self._handle_lost_lease(error)
            return
        self._failures = self._failures.add_failure(self._context.clock(), error)
        self._failed_revision = attempt.revision
        log.error(
            "Stream failed%s: %s", f" at {current_batch}" if current_batch else "", error, exc_info=error
        )
        summary = summarize_error(error) + (f" ({current_batch})" if current_batch else "")
        traceback_text = describe_user_traceback(error)
        if traceback_text:
            log.error("Traceback of user code:\n%s", traceback_text)
        details = f"\n{traceback_text}" if traceback_text else ""
        if self._failures.is_exhausted(self._context.settings.max_retries):
            self._failed_attempt = attempt
            count_text = (
                "" if self._failures.is_permanent else f"; failed {self._failures.count} times in a row"
            )
            hint = f"To retry, run `penstock stream start {self.stream}` or change the stream's files"
            reason = f"{summary.rstrip('.')}{count_text}. {hint}{details}"
            self._report_health(StreamState.FAILED, reason)
        else:
            self._report_health(StreamState.RETRYING, f"{summary}{details}")

    def _handle_lost_lease(self, error: BaseException) -> None:
        """Note that another host has, or may have, the stream; that host reports its health."""
        is_fenced = isinstance(error, WriterFencedError)
        reason = str(error) if is_fenced else f"it lost its lease, then it failed: {summarize_error(error)}"
        log.warning("Lease lost: %s", reason, exc_info=None if is_fenced else error)
        self._health = None
        self._context.control.report_lost(
            StreamHealth(self.stream, StreamState.FENCED, reason, self._context.clock())
        )

    def _report_outcome(self, outcome: BatchOutcome) -> None:
        self._context.reporter.report_batch(to_batch_record(self.stream, outcome))

    def _report_health(self, state: StreamState, reason: str, changed_at_ms: int | None = None) -> None:
        """Report a change of health, and every retry, because each failure is counted."""
        previous = self._health
        is_unchanged = previous is not None and (previous.state, previous.reason) == (state, reason)
        if is_unchanged and state != StreamState.RETRYING:
            return
        if not is_unchanged:
            log.info("Stream %s%s", state, f": {reason}" if reason else "")
        at_ms = self._context.clock() if changed_at_ms is None else changed_at_ms
        self._health = StreamHealth(self.stream, state, reason, at_ms, self._epoch)
        self._context.reporter.report_health(self._health)


def _resting_state(desired_state: DesiredState | None) -> StreamState:
    return StreamState.STOPPED if desired_state is None else desired_state.desired.as_state
