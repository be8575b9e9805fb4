"""Alerts, posted to a real webhook."""

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from tests.http_server import run_http_server

from penstock.infra.ports import find_free_ports
from penstock.platform.services.alerts import Alert, AlertDispatcher, transition_alert


@dataclass
class Webhook:
    """Stores posts, after it has refused as many as `refusals`."""

    reference: str = ""
    refusals: int = 0
    posted: list[dict[str, str]] = field(default_factory=list)


def write_reference(folder: Path, url: str) -> str:
    """Write the URL into a file; return the reference of that file."""
    (folder / "webhook").write_text(url)
    return f"file:{folder / 'webhook'}"


@pytest.fixture
def webhook(tmp_path: Path) -> Iterator[Webhook]:
    hook = Webhook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if hook.refusals:
                hook.refusals -= 1
                self.send_error(503)
            else:
                hook.posted.append(body)
                self.send_response(204)
                self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with run_http_server(Handler) as address:
        hook.reference = write_reference(tmp_path, f"{address}/alerts")
        yield hook


FAILED = Alert("s", "failed", "OSError: disk full (batch 7)", 1_000)


def test_an_alert_is_posted_and_logged(webhook: Webhook, caplog: pytest.LogCaptureFixture) -> None:
    alerts = AlertDispatcher(webhook.reference)
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


def test_a_refused_alert_is_posted_again(webhook: Webhook) -> None:
    webhook.refusals = 1
    alerts = AlertDispatcher(webhook.reference)
    alerts(FAILED)
    alerts.close()
    assert len(webhook.posted) == 1


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:{port}/canary-5e4c", "http://127.0.0.1:{port}x/canary-5e4c", "canary-5e4c"]
)
def test_an_unreachable_webhook_is_logged_without_its_address(
    tmp_path: Path, url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses_s: list[float] = []
    monkeypatch.setattr("penstock.platform.services.alerts.sleep", pauses_s.append)
    (port,) = find_free_ports(1)
    alerts = AlertDispatcher(write_reference(tmp_path, url.format(port=port)))
    alerts(FAILED)
    alerts.close(10)
    assert "Alert not posted (attempts=3" in caplog.messages[-1]
    assert "canary" not in caplog.text
    assert pauses_s == [0.5, 1.0], "no pause after the last attempt: it would delay the next alert"


def test_failures_and_recoveries_are_alerted() -> None:
    def is_alerted(before: str | None, state: str) -> bool:
        return transition_alert(before, Alert("s", state, "", 0)) is not None

    assert is_alerted("running", "retrying")
    assert is_alerted("retrying", "failed")
    assert is_alerted("retrying", "running")
    assert is_alerted(None, "failed")
    assert not is_alerted("retrying", "retrying")
    assert not is_alerted("running", "drained")
    assert not is_alerted(None, "running")
    assert not is_alerted("paused", "running")
