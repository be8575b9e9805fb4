"""The host's HTTP server: a start page, /metrics for Prometheus, /health, /live, and the pages below /quality/.

| path | answers |
|---|---|
| `/` | a page that links to the others, with the streams of this host |
| `/live` | 200 while the process answers |
| `/health` | the state of each stream; 503 if one has failed |
| `/metrics` | the metrics of the host and its streams |
| `/quality/` | the data quality pages, if they are served |
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from prometheus_client import CollectorRegistry, make_asgi_app

from penstock.core.errors import HttpServerError
from penstock.core.http.addresses import is_loopback
from penstock.core.http.asgi import JSON, AsgiApplication, Message, Receive, Scope, Send, respond
from penstock.core.http.bearer_token import BearerToken, TokenCheck, require_token_beyond_loopback
from penstock.core.http.page_guard import PageGuard
from penstock.core.http.server import HttpServer, TlsFiles
from penstock.core.secret import read_secret
from penstock.engine.host.control import StreamHealth
from penstock.engine.host_settings import HostSettings
from penstock.platform.errors import PortTakenError
from penstock.platform.host.index_page import HTML_HEADERS, render_index
from penstock.platform.host.quality_pages import QUALITY_URL_PREFIX, serve_file

HealthReader = Callable[[], Mapping[str, StreamHealth]]


@contextmanager
def serve_http(
    settings: HostSettings, registry: CollectorRegistry, read_health: HealthReader, pages: Path | None = None
) -> Iterator[int]:
    """Serve requests until the context ends; yields the port, which differs from the setting if that is 0.

    `pages` is the folder of the data quality pages, if they are served. Raises ServerAccessError if other machines
    would reach the address without a token.
    """
    address, port = settings.metrics_address, settings.metrics_port
    token = _read_token(settings)
    require_token_beyond_loopback(
        address, token, "The host's metrics", "Set host.metrics_token to a secret reference"
    )
    tls = (
        TlsFiles(Path(settings.metrics_certificate), Path(settings.metrics_key))
        if settings.metrics_certificate
        else None
    )
    application = build_application(registry, read_health, pages, token)
    server = HttpServer(application, address, port, name="metrics", tls=tls)
    try:
        server.start()
    except HttpServerError as error:
        raise PortTakenError(
            f"The host cannot serve its metrics. {error} Another host may use that port: "
            "stop it, or set PENSTOCK_HOST__METRICS_PORT=0 for a free port"
        ) from None
    try:
        yield server.port
    finally:
        server.stop()


def build_application(
    registry: CollectorRegistry,
    read_health: HealthReader,
    pages: Path | None = None,
    token: BearerToken | None = None,
) -> AsgiApplication:
    """Return the application. Requests of this machine are guarded against pages of other sites.

    Those of other machines need the token, except for `/live`.
    """
    local = PageGuard(_HostPages(registry, read_health, pages))
    remote = TokenCheck(_HostPages(registry, read_health, pages), token) if token else local

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/live":
            await respond(send, 200, b"live\n")
        elif is_loopback(scope["client"][0]):
            await local(scope, receive, send)
        else:
            await remote(scope, receive, send)

    return answer


class _HostPages:
    """Answers each path for every caller."""

    def __init__(self, registry: CollectorRegistry, read_health: HealthReader, pages: Path | None) -> None:
        self._metrics = cast("AsgiApplication", make_asgi_app(registry))
        self._read_health = read_health
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path: str = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            await respond(send, 405, b"Use GET.\n")
        elif path == "/health":
            status, body = _describe_health(self._read_health())
            await respond(send, status, json.dumps(body).encode(), JSON)
        elif self._pages is not None and path.startswith(QUALITY_URL_PREFIX):
            await respond(send, *serve_file(self._pages, path))
        elif path == "/metrics":
            await self._metrics(scope, _receive_no_body, send)
        elif path == "/":
            page = render_index(self._read_health(), has_quality_pages=self._pages is not None)
            await respond(send, 200, page, HTML_HEADERS)
        else:
            await respond(send, 404, b"Not found. / lists what there is.\n")


async def _receive_no_body() -> Message:
    """Return an empty body: a request for a page has none, and one that claims to have is not waited for."""
    return {"type": "http.request", "body": b"", "more_body": False}


def _describe_health(streams: Mapping[str, StreamHealth]) -> tuple[int, dict[str, Any]]:
    """Return the status and the state of each stream; failed ones are named once more."""
    failed = sorted(name for name, health in streams.items() if health.state.is_failure)
    states = {
        name: {"state": health.state, "reason": health.reason} for name, health in sorted(streams.items())
    }
    return 503 if failed else 200, {"healthy": not failed, "failed": failed, "streams": states}


def _read_token(settings: HostSettings) -> BearerToken | None:
    if not settings.metrics_token:
        return None
    description = "The token of the host's metrics"
    return BearerToken(read_secret(settings.metrics_token, description), description)
