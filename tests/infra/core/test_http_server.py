"""Limits of the HTTP server, with real sockets: silent and slow clients do not shut out those that work."""

import logging
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.infra.core.http_client import get, is_closed, open_connections, read_page
from tests.infra.core.pages import answer_page
from tests.patience import PATIENCE_S

from penstock.core.errors import HttpServerError, ServerAccessError
from penstock.core.http.bearer_token import BearerToken, TokenCheck, require_token_beyond_loopback
from penstock.core.http.connections import ConnectionLimits
from penstock.core.http.server import HttpServer, TlsFiles
from penstock.core.secret import Secret
from penstock.infra.local.certificates import make_certificates

PAGE = (200, b"page 0")
HALF_A_HEAD = b"GET / HTTP/1.1\r\nHost: local"
HALF_A_BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf"
ServerStarter = Callable[..., HttpServer]


@pytest.fixture
def start() -> Iterator[ServerStarter]:
    """Starts servers of a page with limits, and stops them at the end."""
    servers = []

    def start_server(tls: TlsFiles | None = None, **limits: float) -> HttpServer:
        chosen = ConnectionLimits(**limits)  # type: ignore[arg-type]
        server = HttpServer(answer_page, "127.0.0.1", 0, name="page", limits=chosen, tls=tls)
        server.start()
        servers.append(server)
        return server

    yield start_server
    for server in servers:
        server.stop()


@pytest.mark.parametrize(
    "sent", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["nothing", "half a head", "half a body"]
)
def test_a_client_is_answered_beside_one_that_hangs(start: ServerStarter, sent: bytes) -> None:
    server = start()
    with open_connections(server.port, 1, sent):
        assert [get(server.port) for _ in range(5)] == [PAGE] * 5


@pytest.mark.parametrize(
    "sent", [b"", HALF_A_HEAD, HALF_A_BODY], ids=["nothing", "half a head", "half a body"]
)
def test_four_hundred_hanging_connections_shut_nobody_out(start: ServerStarter, sent: bytes) -> None:
    server = start()
    with open_connections(server.port, 400, sent) as connections:
        assert [get(server.port) for _ in range(20)] == [PAGE] * 20
        assert is_closed(connections[0]), "the first one makes way for others"


def test_few_files_are_enough_for_many_connections() -> None:
    """With 256 open files the server that was replaced span, and answered no client."""
    command = [sys.executable, "-m", "tests.infra.core.limited_server"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with open_connections(port, 400):
            assert [get(port) for _ in range(20)] == [PAGE] * 20
        _, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stderr) == (0, "")


@pytest.mark.parametrize("sent", [b"", HALF_A_HEAD], ids=["nothing", "half a head"])
def test_a_head_must_arrive_in_time(start: ServerStarter, sent: bytes) -> None:
    server = start(head_timeout_s=0.2)
    with open_connections(server.port, 1, sent) as (connection,):
        assert is_closed(connection)


def test_the_next_head_must_arrive_in_time_too(start: ServerStarter) -> None:
    server = start(head_timeout_s=0.2)
    with open_connections(server.port, 1, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n") as (connection,):
        assert read_page(connection) == b"page 0"
        connection.sendall(HALF_A_HEAD)
        assert is_closed(connection)


def test_a_body_may_take_longer_than_a_head(start: ServerStarter) -> None:
    server = start(head_timeout_s=0.2)
    with open_connections(server.port, 2, HALF_A_BODY) as (slow, silent):
        silent.settimeout(0.5)
        with pytest.raises(TimeoutError):
            silent.recv(1)
        slow.sendall(b"x" * 96)
        assert read_page(slow) == b"page 100"


def test_the_longest_waiting_connection_makes_way(start: ServerStarter) -> None:
    server = start(max_connections=3)
    with open_connections(server.port, 3) as first, open_connections(server.port, 1) as _:
        assert is_closed(first[0])
        for connection in first[1:]:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert read_page(connection) == b"page 0"


def test_a_server_with_a_certificate_speaks_tls_only(start: ServerStarter, tmp_path: Path) -> None:
    make_certificates(tmp_path, datetime.now(UTC))
    server = start(
        TlsFiles(tmp_path / "broker.pem", tmp_path / "broker.key"), max_connections=20, head_timeout_s=1
    )
    context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    with (
        open_connections(server.port, 40) as silent,
        open_connections(server.port, 1, b"GET / HTTP/1.1\r\n\r\n"),
    ):
        assert get(server.port, context=context) == PAGE
        assert is_closed(silent[0])
    with pytest.raises((ConnectionError, OSError)):
        get(server.port)


def test_a_server_that_stopped_is_gone(start: ServerStarter) -> None:
    server = start()
    with open_connections(server.port, 1) as (connection,):
        server.stop()
        assert is_closed(connection)
    with pytest.raises(ConnectionRefusedError):
        get(server.port)


def test_a_port_in_use_and_a_missing_certificate_are_reported(start: ServerStarter, tmp_path: Path) -> None:
    port = start().port
    with pytest.raises(HttpServerError, match=rf"127\.0\.0\.1:{port}: .* use another address"):
        HttpServer(answer_page, "127.0.0.1", port, name="second").start()
    with pytest.raises(HttpServerError, match=r"certificate .*none\.pem .* Name a PEM file"):
        start(TlsFiles(tmp_path / "none.pem", tmp_path / "none.key"))


def test_requests_must_bear_the_token(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    token = BearerToken(Secret("canary-0123456789"), "It")
    server = HttpServer(TokenCheck(answer_page, token), "127.0.0.1", 0, name="page")
    server.start()
    try:
        assert get(server.port, Authorization="Bearer canary-0123456789") == PAGE
        for wrong in ("Bearer canary-012345678", "Basic canary-0123456789", "canary-0123456789"):
            status, body = get(server.port, Authorization=wrong)
            assert (status, b"canary" in body) == (401, False)
        assert get(server.port)[0] == 401
    finally:
        server.stop()
    assert "canary" not in caplog.text


def test_a_short_token_is_refused_without_showing_it() -> None:
    with pytest.raises(ServerAccessError, match=r"fewer than 16 .*openssl rand") as refused:
        BearerToken(Secret("short"), "The token")
    assert "short" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    require_token_beyond_loopback(host, None, "It", "Set a token")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "machine.example", ""])
def test_other_addresses_need_a_token(host: str) -> None:
    with pytest.raises(ServerAccessError, match=r"Set a token, or use 127\.0\.0\.1"):
        require_token_beyond_loopback(host, None, "It", "Set a token")
    require_token_beyond_loopback(host, object(), "It", "Set a token")
