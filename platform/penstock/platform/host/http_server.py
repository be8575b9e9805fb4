"""The host's HTTP server on loopback: /metrics for Prometheus, /health as JSON, and the pages below /quality/."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from penstock.engine.host.control import StreamHealth
from penstock.platform.errors import PortTakenError
from penstock.platform.host.quality_pages import QUALITY_URL_PREFIX, StartResponse, serve_file
from penstock.platform.settings.model import LOOPBACK

HealthReader = Callable[[], Mapping[str, StreamHealth]]


@contextmanager
def serve_http(
    port: int, registry: CollectorRegistry, read_health: HealthReader, pages: Path | None = None
) -> Iterator[int]:
    """Serve requests until the context ends; yields the port, which differs from `port` if that is 0.

    `pages` is the folder of the data quality pages, if they are served.
    """
    try:
        server = make_server(
            LOOPBACK, port, _build_application(registry, read_health, pages), WSGIServer, _QuietRequestHandler
        )
    except OSError as error:
        raise PortTakenError(
            f"The host cannot serve its metrics at {LOOPBACK}:{port} ({error}). Another host may use that port. "
            "Stop it, or set PENSTOCK_HOST__METRICS_PORT=0 for a free port"
        ) from None
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _build_application(
    registry: CollectorRegistry, read_health: HealthReader, pages: Path | None
) -> Callable[[dict[str, Any], StartResponse], Iterable[bytes]]:
    metrics = make_wsgi_app(registry)

    def answer_request(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/health":
            return _serve_health(read_health(), start_response)
        if pages is not None and environ["PATH_INFO"].startswith(QUALITY_URL_PREFIX):
            return serve_file(pages, environ, start_response)
        page: Iterable[bytes] = metrics(environ, start_response)
        return page

    return answer_request


def _serve_health(streams: Mapping[str, StreamHealth], start_response: StartResponse) -> Iterable[bytes]:
    is_healthy = not any(stream_health.state.is_failure for stream_health in streams.values())
    body = {
        name: {"state": stream_health.state, "reason": stream_health.reason}
        for name, stream_health in sorted(streams.items())
    }
    start_response(
        "200 OK" if is_healthy else "503 Service Unavailable", [("Content-Type", "application/json")]
    )
    return [json.dumps({"healthy": is_healthy, "streams": body}).encode()]


class _QuietRequestHandler(WSGIRequestHandler):
    """Does not log requests: a scrape every few seconds is not worth a line."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the base class's
        """Log nothing."""
