"""Alerts about streams: a log line, and a webhook call if one is configured.

The webhook receives one JSON object per call: `stream`, `state`, `reason`, `at`, and a `text` that chat services
can display. Raising an alert never blocks. An alert that cannot be delivered is still in the log.
"""

import json
import logging
import queue
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from http.client import HTTPException
from time import sleep

from penstock.core.errors import SecretError
from penstock.core.secret import Secret, read_secret, show_reference
from penstock.engine.host.control import StreamHealth
from penstock.engine.host.stream_state import StreamState

log = logging.getLogger(__name__)

MAX_POST_ATTEMPTS = 3
POST_TIMEOUT_S = 5.0
MAX_QUEUED_ALERTS = 1_000
REMINDER_INTERVAL_MS = 3_600_000
"""Time after which an alert about a lasting failure is repeated."""

FAILURE_STATES = frozenset(state for state in StreamState if state.is_failure)


@dataclass(frozen=True)
class Alert:
    """A change of a stream's state that people should know about."""

    stream: str
    state: str
    reason: str
    at_ms: int

    @property
    def text(self) -> str:
        """The alert as one sentence."""
        return f"{self.stream} is {self.state}" + (f": {self.reason}" if self.reason else "")

    def as_json(self) -> dict[str, str]:
        """Return the payload for the webhook."""
        at = datetime.fromtimestamp(self.at_ms / 1000, UTC).isoformat(timespec="milliseconds")
        fields = {name: value for name, value in asdict(self).items() if name != "at_ms"}
        return {**fields, "at": at, "text": self.text}


AlertHandler = Callable[[Alert], None]


class AlertDispatcher:
    """Writes alerts to the log, and posts them to the webhook from a separate thread.

    `webhook` is the reference of a secret: a person who reads the URL can post. It is read for each alert, so that
    a changed file takes effect, and is in no message.
    """

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
            log.warning("Alert queue full; alert not posted (queued=%d)", MAX_QUEUED_ALERTS)

    def close(self, timeout_s: float = POST_TIMEOUT_S) -> None:
        """Wait until the queued alerts are posted, at most for the timeout."""
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
                post_alert(read_webhook(self._webhook), alert)
            except (OSError, HTTPException, SecretError) as error:
                if attempt == MAX_POST_ATTEMPTS:
                    message = "Alert not posted (attempts=%d, error=%s): %s"
                    log.error(message, MAX_POST_ATTEMPTS, _describe_error(error), alert.text)  # noqa: TRY400
                else:
                    sleep(2.0**attempt / 4)
            else:
                return


def read_webhook(reference: str) -> Secret:
    """Return the URL of the webhook; raise SecretError if it cannot be read, or is no URL."""
    webhook = read_secret(reference, "The webhook of alerts")
    if not webhook.reveal().startswith(("http://", "https://")):
        raise SecretError(
            f"The webhook of alerts, named as {show_reference(reference)}, is no URL. Start it with https://."
        )
    return webhook


def _describe_error(error: Exception) -> str:
    """Return the reason of an error; errors of the HTTP client may quote the URL, and are only named."""
    if isinstance(error, HTTPException):
        return type(error).__name__
    return str(error)


def post_alert(webhook: Secret, alert: Alert) -> None:
    """Post an alert; raise OSError if the webhook does not accept it."""
    body = json.dumps(alert.as_json()).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(webhook.reveal(), body, headers)  # noqa: S310  read_webhook checks it
    with urllib.request.urlopen(request, timeout=POST_TIMEOUT_S):  # noqa: S310
        pass


class TroubleTracker:
    """Tracks failing streams and decides when to alert: at the start of a failure, every hour, and at its end.

    A failure ends with the next committed batch. A restart alone does not end it, because the stream may fail at
    the same offset again.
    """

    def __init__(self) -> None:
        self._reported_alerts: dict[str, Alert] = {}

    def next_alert(self, health: StreamHealth) -> Alert | None:
        """Return the alert for a stream's reported health; None if no alert is due."""
        alert = Alert(health.stream, health.state, health.reason_summary, health.at_ms)
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
        """Return the alert for a stream that committed a batch; None if it was not failing or still is."""
        if not health.state.is_active or self._reported_alerts.pop(health.stream, None) is None:
            return None
        return Alert(health.stream, StreamState.RUNNING, "", health.at_ms)


def transition_alert(previous_state: str | None, alert: Alert) -> Alert | None:
    """Return the alert if the new state starts or ends a failure, None otherwise."""
    if alert.state in FAILURE_STATES:
        return None if previous_state == alert.state != StreamState.FAILED else alert
    return alert if previous_state in FAILURE_STATES and alert.state == StreamState.RUNNING else None
