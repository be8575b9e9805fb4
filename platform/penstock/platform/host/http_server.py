"""A host's window to the outside, on loopback: /metrics for Prometheus, /health for whoever asks, /quality/."""

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
    """Answer while the context lasts; yields the port, which is another where 0 was asked for.

    `pages` is the folder of what is expected of tables, where that is to be shown.
    """
    try:
        server = make_server(
            LOOPBACK, port, _build_application(registry, read_health, pages), WSGIServer, _QuietRequestHandler
        )
    except OSError as error:
        raise PortTakenError(
            f"The host cannot show its metrics at {LOOPBACK}:{port} ({error}): another host does, perhaps. "
            "PENSTOCK_HOST__METRICS_PORT=0 takes a port that is free"
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
    return [json.dumps({"well": is_healthy, "streams": body}).encode()]


class _QuietRequestHandler(WSGIRequestHandler):
    """A request every few seconds is no news."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the base class's
        """Say nothing."""
