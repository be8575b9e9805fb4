"""Alerts, to a webhook that really listens."""

import json
import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from penstock.infra.ports import find_free_ports
from penstock.platform.services.alerts import Alert, AlertDispatcher, transition_alert


@dataclass
class Webhook:
    """What was posted; the first posts are refused, as many as `refusals`."""

    address: str = ""
    refusals: int = 0
    posted: list[dict[str, str]] = field(default_factory=list)


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    found = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if found.refusals:
                found.refusals -= 1
                self.send_error(503)
            else:
                found.posted.append(body)
                self.send_response(204)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    found.address = f"http://127.0.0.1:{server.server_port}/alerts"
    yield found
    server.shutdown()
    server.server_close()
    serving.join()


FAILED = Alert("s", "failed", "OSError: disk full (batch 7)", 1_000)


def test_an_alert_is_posted_and_logged(webhook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    alerts = AlertDispatcher(webhook.address)
    with caplog.at_level(logging.WARNING):
        alerts(FAILED)
    alerts.close()
    assert webhook.posted == [
        {
            "stream": "s",
            "state": "failed",
            "reason": "OSError: disk full (batch 7)",
            "at": "1970-01-01T00:00:01.000+00:00",
            "text": "s is failed: OSError: disk full (batch 7)",
        }
    ]
    assert caplog.messages == ["s is failed: OSError: disk full (batch 7)"]


def test_a_webhook_that_refuses_is_tried_again(webhook: Webhook) -> None:
    webhook.refusals = 1
    alerts = AlertDispatcher(webhook.address)
    alerts(FAILED)
    alerts.close()
    assert len(webhook.posted) == 1


def test_a_webhook_that_is_away_costs_a_line_of_the_log(caplog: pytest.LogCaptureFixture) -> None:
    (port,) = find_free_ports(1)
    alerts = AlertDispatcher(f"http://127.0.0.1:{port}/")
    alerts(FAILED)
    alerts.close(10)
    assert "Alert not posted (attempts=3" in caplog.messages[-1]


def test_trouble_and_its_end_are_worth_an_alert_and_nothing_else_is() -> None:
    def told(before: str | None, state: str) -> bool:
        return transition_alert(before, Alert("s", state, "", 0)) is not None

    assert told("running", "retrying")
    assert told("retrying", "failed")
    assert told("retrying", "running")
    assert told(None, "failed")
    assert not told("retrying", "retrying")
    assert not told("running", "drained")
    assert not told(None, "running")
    assert not told("paused", "running")
