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

from penstock.pipelines.host.control import StreamHealth

log = logging.getLogger(__name__)

TRIES = 3
ANSWER_SECONDS = 5.0
MOST_WAITING = 1_000
REMIND_MS = 3_600_000
"""How long trouble lasts before it is told again."""

GRAVE = ("failed", "parked", "lost")
AT_WORK = ("running", "paused")


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
        told = {name: value for name, value in asdict(self).items() if name != "at_ms"}
        return {**told, "at": at, "text": self.text}


Raise = Callable[[Alert], None]


class Alerts:
    """Raises alerts: to the log at once, to the webhook by a thread of its own."""

    def __init__(self, webhook: str) -> None:
        self._webhook = webhook
        self._waiting: queue.Queue[Alert] = queue.Queue(MOST_WAITING)
        self._poster: threading.Thread | None = None
        self._lock = threading.Lock()

    def __call__(self, alert: Alert) -> None:
        """Raise an alert."""
        log.warning("%s", alert.text, extra={"stream": alert.stream})
        if not self._webhook:
            return
        with self._lock:
            if self._poster is None:
                self._poster = threading.Thread(target=self._post_all, name="alerts", daemon=True)
                self._poster.start()
        try:
            self._waiting.put_nowait(alert)
        except queue.Full:
            log.error("%d alerts wait for %s: this one is not posted", MOST_WAITING, self._webhook)  # noqa: TRY400

    def close(self, seconds: float = ANSWER_SECONDS) -> None:
        """Have what waits posted, as far as the webhook answers soon."""
        if self._poster is not None:
            waiter = threading.Thread(target=self._waiting.join, daemon=True)
            waiter.start()
            waiter.join(seconds)

    def _post_all(self) -> None:
        while True:
            alert = self._waiting.get()
            try:
                self._post(alert)
            finally:
                self._waiting.task_done()

    def _post(self, alert: Alert) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                post(self._webhook, alert)
            except (OSError, HTTPException) as problem:
                if attempt == TRIES:
                    log.error("alert not posted after %d tries (%s): %s", TRIES, problem, alert.text)  # noqa: TRY400
                time.sleep(2.0**attempt / 4)
            else:
                return


def post(webhook: str, alert: Alert) -> None:
    """Post an alert. OSError where nobody takes it."""
    body = json.dumps(alert.as_json()).encode()
    request = urllib.request.Request(webhook, body, {"Content-Type": "application/json"})  # noqa: S310  a setting
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS):  # noqa: S310
        pass


class Troubles:
    """Which streams are in trouble, and what of it people should hear: its begin, each hour of it, and its end.

    Trouble is over when a batch is committed, not when a stream was begun again, for it may fail at the same place.
    """

    def __init__(self) -> None:
        self._told: dict[str, Alert] = {}

    def news(self, health: StreamHealth) -> Alert | None:
        """What to tell of how a stream is doing; None where it is no news."""
        alert = Alert(health.stream, health.state, health.reason, health.at_ms)
        before = self._told.get(alert.stream)
        if alert.state not in GRAVE:
            if alert.state not in AT_WORK:  # somebody put it to rest
                self._told.pop(alert.stream, None)
            return None
        old = before is not None and alert.at_ms - before.at_ms >= REMIND_MS
        if old or news(before.state if before else None, alert):
            self._told[alert.stream] = alert
            return alert
        return None

    def over(self, health: StreamHealth) -> Alert | None:
        """What to tell of a stream that has committed a batch; None where it was in no trouble, or still is."""
        if health.state not in AT_WORK or self._told.pop(health.stream, None) is None:
            return None
        return Alert(health.stream, "running", "", health.at_ms)


def news(before: str | None, alert: Alert) -> Alert | None:
    """What is worth an alert of a stream's new state: trouble, and that it is over."""
    if alert.state in GRAVE:
        return None if before == alert.state != "parked" else alert
    return alert if before in GRAVE and alert.state == "running" else None
