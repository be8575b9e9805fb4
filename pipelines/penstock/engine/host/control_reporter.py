"""Reports the batches and the health of streams to the control store, without blocking any batch.

A thread of its own sends batches one after the other, each until the store accepts it. The next host sends what is
not sent when a host ends: the journal of the stream has it. Of a stream's health, only the newest is sent.
"""

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable

from penstock.core.log_context import bind_log_context
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.host.control import BatchRecord, HostControl, StreamHealth

log = logging.getLogger(__name__)

RETRY_INTERVAL_S = 0.5


class ControlReporter:
    """Sends reports of a host to the control store. Safe to use from several threads."""

    def __init__(self, control: HostControl, retry_interval_s: float = RETRY_INTERVAL_S) -> None:
        self._control = control
        self._retry_interval_s = retry_interval_s
        self._pending_batches: dict[str, deque[BatchRecord]] = defaultdict(deque)
        self._newest_batch_ids: dict[str, int] = {}
        self._pending_health: dict[str, StreamHealth] = {}
        self._condition = threading.Condition()
        self._health_lock = threading.Lock()
        self._last_problem = ""
        self._thread: threading.Thread | None = None

    def start_stream(self, stream: str) -> int:
        """Return the newest batch of a stream that the store has; -1 for none. Later batches are to be reported."""
        last = self._control.read_last_batch(stream)
        stored_batch_id = -1 if last is None else last.batch_id
        with self._condition:
            pending = self._pending_batches[stream]
            self._newest_batch_ids[stream] = (
                max(stored_batch_id, pending[-1].batch_id) if pending else stored_batch_id
            )
            return self._newest_batch_ids[stream]

    def report_batch(self, record: BatchRecord) -> None:
        """Queue a batch, unless it was reported already; does not wait."""
        with self._condition:
            if record.batch_id > self._newest_batch_ids.get(record.stream, -1):
                self._newest_batch_ids[record.stream] = record.batch_id
                self._pending_batches[record.stream].append(record)
                self._wake_thread()

    def report_health(self, health: StreamHealth) -> None:
        """Send the health of a stream now, or as soon as the store accepts it."""
        with self._condition:
            self._pending_health[health.stream] = health
        self._try_send(lambda: self._send_health(health.stream))
        with self._condition:
            if self._pending_health:
                self._wake_thread()

    def wait_until_reported(self, stream: str, timeout_s: float) -> bool:
        """Wait until all batches of a stream are stored, or until the timeout; return whether they are."""
        with self._condition:
            return self._condition.wait_for(lambda: not self._pending_batches[stream], timeout_s)

    def _wake_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run_loop, name="control-reporter", daemon=True)
            self._thread.start()
        self._condition.notify_all()

    def _run_loop(self) -> None:
        while True:
            with self._condition:
                self._condition.wait_for(self._has_pending)
                streams = {
                    *self._pending_health,
                    *(name for name, pending in self._pending_batches.items() if pending),
                }
            failed_streams = [stream for stream in streams if not self._report_stream(stream)]
            if failed_streams:
                with self._condition:
                    self._condition.wait(self._retry_interval_s)

    def _report_stream(self, stream: str) -> bool:
        succeeded = self._try_send(lambda: self._send_health(stream))
        while succeeded and (pending := self._pending_batches.get(stream)):
            succeeded = self._try_send(lambda record=pending[0]: self._send_batch(record))  # type: ignore[misc]
        return succeeded

    def _has_pending(self) -> bool:
        return bool(self._pending_health) or any(self._pending_batches.values())

    def _send_batch(self, record: BatchRecord) -> None:
        try:
            self._control.record_batch(record)
        except (TypeError, ValueError):  # the record itself is invalid: a retry would fail the same way
            with bind_log_context(record.stream, record.batch_id):
                log.exception("Batch rejected by control store; its tables have it")
        with self._condition:
            self._pending_batches[record.stream].popleft()
            self._condition.notify_all()

    def _send_health(self, stream: str) -> None:
        with self._health_lock:
            with self._condition:
                health = self._pending_health.get(stream)
            if health is None:
                return
            self._control.report_health(health)
            with self._condition:
                if self._pending_health.get(stream) is health:
                    del self._pending_health[stream]

    def _try_send(self, send: Callable[[], None]) -> bool:
        """Send; on failure log each distinct error once, and return False."""
        try:
            send()
        except Exception as error:
            if str(error) != self._last_problem:
                log.exception("Report to control store failed; retrying every %g s", self._retry_interval_s)
            self._last_problem = str(error)
            return False
        self._last_problem = ""
        return True


def to_batch_record(stream: str, outcome: BatchOutcome) -> BatchRecord:
    """Convert an outcome to the record that the control store keeps."""
    watermark = outcome.watermark.value
    return BatchRecord(
        stream=stream,
        batch_id=outcome.batch_id,
        epoch=outcome.epoch,
        kind=outcome.kind,
        clock_ms=outcome.clock,
        watermark_ms=watermark if outcome.watermark.is_finite else None,
        accounts=outcome.accounts,
        panes=outcome.panes,
        rows=sum(outcome.panes.values()) + outcome.archived,
        lag_records=outcome.lag_records,
        durations_ms=outcome.durations_ms,
        state_rows=outcome.state_rows,
        state=outcome.state_sizes,
        result_rows={
            path: change.result_rows
            for path, change in outcome.changes.items()
            if change.result_rows is not None
        },
        committed_at_ms=outcome.committed_at_ms,
    )
