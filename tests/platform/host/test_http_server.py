"""What the host's server answers to this machine and to others, and with which token."""

import asyncio
import http.client
import json
import re
import socket
import ssl
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from tests.patience import PATIENCE_S

from penstock.core.errors import SecretError, ServerAccessError
from penstock.core.http.bearer_token import BearerToken
from penstock.core.secret import Secret
from penstock.engine.host.control import StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.engine.host_settings import HostSettings
from penstock.infra.container.errors import ContainerError
from penstock.infra.container.page_check import check_page
from penstock.infra.local.certificates import make_certificates
from penstock.platform.host.http_server import build_application, serve_http

TOKEN = "canary-0123456789"
STREAMS = {
    "slow": StreamHealth("slow", StreamState.RUNNING, "", 0),
    "broken": StreamHealth("broken", StreamState.FAILED, "no such field", 0),
}


@pytest.fixture
def failing_port() -> Iterator[int]:
    """The port of a host with a failed stream."""
    with serve_http(HostSettings(metrics_port=0), CollectorRegistry(), lambda: STREAMS) as port:
        yield port


def get(port: int, path: str) -> tuple[int, Any]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) as connection:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()


def ask(application: Any, path: str, client: str, *headers: tuple[bytes, bytes]) -> int:
    """Send a request from an address; return the status."""
    statuses: list[int] = []

    async def send(message: Any) -> None:
        statuses.extend([message["status"]] if "status" in message else [])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    scope = {"type": "http", "method": "GET", "path": path, "client": (client, 5), "query_string": b""}
    asyncio.run(application({**scope, "headers": [(b"host", b"host:9464"), *headers]}, receive, send))
    (status,) = statuses
    return status


def test_health_names_failed_streams_and_live_says_that_the_process_answers(failing_port: int) -> None:
    status, body = get(failing_port, "/health")
    assert (status, json.loads(body)) == (
        503,
        {
            "healthy": False,
            "failed": ["broken"],
            "streams": {
                "broken": {"state": "failed", "reason": "no such field"},
                "slow": {"state": "running", "reason": ""},
            },
        },
    )
    assert get(failing_port, "/live") == (200, b"live\n")
    assert get(failing_port, "/nothing")[0] == 404


def test_the_start_page_links_to_what_is_there_and_shows_streams(tmp_path: Path) -> None:
    """It was raw text of metrics, and the address of the data quality page was hard to find."""
    streams = {**STREAMS, "<b>": StreamHealth("<b>", StreamState.RETRYING, "line <1>\nline 2", 0)}
    with serve_http(HostSettings(metrics_port=0), CollectorRegistry(), lambda: streams, tmp_path) as port:
        status, body = get(port, "/")
        page = body.decode()
        links = re.findall(r'href="([^"]+)"', page)
        assert (status, links) == (200, ["/health", "/live", "/metrics", "/quality/docs/index.html"])
        (tmp_path / "docs").mkdir()
        (tmp_path / "docs" / "index.html").write_text("<p>", "utf-8")
        assert [get(port, link)[0] for link in links] == [503, 200, 200, 200]
    assert '<tr class="failed"><td>broken</td><td>failed</td><td>no such field</td></tr>' in page
    assert "<td>&lt;b&gt;</td><td>retrying</td><td>line &lt;1&gt;</td>" in page, "escaped, and one line"


def test_the_check_of_a_container_sees_a_failed_stream(failing_port: int) -> None:
    check_page(f"http://127.0.0.1:{failing_port}/live")
    with pytest.raises(ContainerError, match=r"/health answers 503: .*no such field"):
        check_page(f"http://127.0.0.1:{failing_port}/health")


def test_the_check_of_a_container_does_not_wait_for_a_silent_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(ContainerError, match="does not answer"):
            check_page(f"http://127.0.0.1:{port}/live")


def test_a_silent_connection_blocks_neither_metrics_nor_health(failing_port: int) -> None:
    with socket.create_connection(("127.0.0.1", failing_port)):
        assert get(failing_port, "/metrics")[0] == 200
        assert get(failing_port, "/health")[0] == 503


def test_other_machines_need_the_token_and_this_one_does_not() -> None:
    token = BearerToken(Secret(TOKEN), "It")
    application = build_application(CollectorRegistry(), dict, None, token)
    bearer = (b"authorization", f"Bearer {TOKEN}".encode())
    for path in ("/metrics", "/health"):
        assert ask(application, path, "10.0.0.7") == 401
        assert ask(application, path, "10.0.0.7", bearer) == 200
        assert ask(application, path, "127.0.0.1") == 403, "a name that is not this machine's"
    assert ask(application, "/live", "10.0.0.7") == 200


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.7"])
def test_an_address_for_other_machines_needs_a_token(address: str) -> None:
    settings = HostSettings(metrics_port=0, metrics_address=address)
    with (
        pytest.raises(ServerAccessError, match=r"Set host\.metrics_token to a secret reference"),
        serve_http(settings, CollectorRegistry(), dict),
    ):
        pass


def test_metrics_are_served_to_other_machines_with_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    settings = HostSettings(metrics_port=0, metrics_address="0.0.0.0", metrics_token=str(tmp_path / "token"))
    assert settings.local_metrics_address == "127.0.0.1"
    assert settings.reachable_metrics_address == socket.gethostname()
    with serve_http(settings, CollectorRegistry(), dict) as port:
        assert get(port, "/metrics")[0] == 200


def test_a_missing_token_file_is_reported(tmp_path: Path) -> None:
    settings = HostSettings(metrics_port=0, metrics_token=str(tmp_path / "none"))
    with (
        pytest.raises(SecretError, match="token of the host's metrics is not in a file"),
        serve_http(settings, CollectorRegistry(), dict),
    ):
        pass


def test_metrics_are_served_over_https_with_a_certificate(tmp_path: Path) -> None:
    make_certificates(tmp_path, datetime.now(UTC))
    files = {"metrics_certificate": str(tmp_path / "broker.pem"), "metrics_key": str(tmp_path / "broker.key")}
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    with (
        serve_http(HostSettings(metrics_port=0, **files), CollectorRegistry(), dict) as port,  # type: ignore[arg-type]
        closing(
            http.client.HTTPSConnection("localhost", port, timeout=PATIENCE_S, context=context)
        ) as connection,
    ):
        connection.request("GET", "/metrics")
        assert connection.getresponse().status == 200
    with pytest.raises(ValueError, match="Set both, or neither"):
        HostSettings(metrics_certificate=files["metrics_certificate"])
