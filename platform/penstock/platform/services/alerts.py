"""Telling people at once: a line of the log, and a webhook where one is set.

A webhook gets one JSON object a post: `stream`, `state`, `reason`, `at` and a `text`, which chat services show as
it is. Whoever raises an alert never waits for it, and no alert stops anything: one that nobody takes is in the log.
"""

import json
import logging
import queue
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.client import HTTPException

from penstock.engine.host.control import StreamHealth
from penstock.engine.host.stream_state import StreamState

log = logging.getLogger(__name__)

MAX_POST_ATTEMPTS = 3
POST_TIMEOUT_S = 5.0
MAX_QUEUED_ALERTS = 1_000
REMINDER_INTERVAL_MS = 3_600_000
"""How long trouble lasts before it is told again."""

FAILURE_STATES = frozenset(state for state in StreamState if state.is_failure)


@dataclass(frozen=True)
class Alert:
    """Something that a person should know."""

    stream: str
    state: str
    reason: str
    at_ms: int

    @property
    def text(self) -> str:
        """The same in one sentence."""
        return f"{self.stream} is {self.state}" + (f": {self.reason}" if self.reason else "")

    def as_json(self) -> dict[str, str]:
        """What a webhook gets."""
        at = datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        fields = {name: value for name, value in asdict(self).items() if name != "at_ms"}
        return {**fields, "at": at, "text": self.text}


AlertHandler = Callable[[Alert], None]


class AlertDispatcher:
    """Raises alerts: to the log at once, to the webhook by a thread of its own."""

    def __init__(self, webhook: str) -> None:
        self._webhook = webhook
        self._queue: queue.Queue[Alert] = queue.Queue(MAX_QUEUED_ALERTS)
        self._post_thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def __call__(self, alert: Alert) -> None:
        """Raise an alert."""
        log.warning("%s", alert.text, extra={"stream": alert.stream})
        if not self._webhook:
            return
        with self._lock:
            if self._post_thread is None:
                self._post_thread = threading.Thread(target=self._post_all, name="alerts", daemon=True)
                self._post_thread.start()
        try:
            self._queue.put_nowait(alert)
        except queue.Full:
            log.error("%d alerts wait for %s: this one is not posted", MAX_QUEUED_ALERTS, self._webhook)  # noqa: TRY400

    def close(self, timeout_s: float = POST_TIMEOUT_S) -> None:
        """Have what waits posted, as far as the webhook answers soon."""
        if self._post_thread is not None:
            waiter = threading.Thread(target=self._queue.join, daemon=True)
            waiter.start()
            waiter.join(timeout_s)

    def _post_all(self) -> None:
        while True:
            alert = self._queue.get()
            try:
                self._post_with_retries(alert)
            finally:
                self._queue.task_done()

    def _post_with_retries(self, alert: Alert) -> None:
        for attempt in range(1, MAX_POST_ATTEMPTS + 1):
            try:
                post_alert(self._webhook, alert)
            except (OSError, HTTPException) as error:
                if attempt == MAX_POST_ATTEMPTS:
                    problem = "alert not posted after %d tries (%s): %s"
                    log.error(problem, MAX_POST_ATTEMPTS, error, alert.text)  # noqa: TRY400
                time.sleep(2.0**attempt / 4)
            else:
                return


def post_alert(webhook: str, alert: Alert) -> None:
    """Post an alert. OSError where nobody takes it."""
    body = json.dumps(alert.as_json()).encode()
    request = urllib.request.Request(webhook, body, {"Content-Type": "application/json"})  # noqa: S310  a setting
    with urllib.request.urlopen(request, timeout=POST_TIMEOUT_S):  # noqa: S310
        pass


class TroubleTracker:
    """Which streams are in trouble, and what of it people should hear: its begin, each hour of it, and its end.

    Trouble is over when a batch is committed, not when a stream was begun again, for it may fail at the same place.
    """

    def __init__(self) -> None:
        self._reported_alerts: dict[str, Alert] = {}

    def next_alert(self, health: StreamHealth) -> Alert | None:
        """What to tell of how a stream is doing; None where it is no news."""
        alert = Alert(health.stream, health.state, health.reason, health.at_ms)
        previous = self._reported_alerts.get(alert.stream)
        if not health.state.is_failure:
            if not health.state.is_active:  # a user stopped it
                self._reported_alerts.pop(alert.stream, None)
            return None
        is_reminder_due = previous is not None and alert.at_ms - previous.at_ms >= REMINDER_INTERVAL_MS
        if is_reminder_due or transition_alert(previous.state if previous else None, alert):
            self._reported_alerts[alert.stream] = alert
            return alert
        return None

    def recovery_alert(self, health: StreamHealth) -> Alert | None:
        """What to tell of a stream that has committed a batch; None where it was in no trouble, or still is."""
        if not health.state.is_active or self._reported_alerts.pop(health.stream, None) is None:
            return None
        return Alert(health.stream, StreamState.RUNNING, "", health.at_ms)


def transition_alert(previous_state: str | None, alert: Alert) -> Alert | None:
    """What is worth an alert of a stream's new state: trouble, and that it is over."""
    if alert.state in FAILURE_STATES:
        return None if previous_state == alert.state != StreamState.FAILED else alert
    return alert if previous_state in FAILURE_STATES and alert.state == StreamState.RUNNING else None
