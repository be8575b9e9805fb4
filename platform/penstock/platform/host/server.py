"""A host's window to the outside, on loopback: /metrics for Prometheus, /health for whoever asks, /quality/."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from penstock.pipelines.host.control import StreamHealth
from penstock.platform.errors import PortTakenError
from penstock.platform.host.pages import PREFIX, Start, shown
from penstock.platform.settings.model import LOOPBACK

Health = Callable[[], Mapping[str, StreamHealth]]
WELL = ("running", "paused", "drained", "stopped")


@contextmanager
def serving(
    port: int, registry: CollectorRegistry, health: Health, pages: Path | None = None
) -> Iterator[int]:
    """Answer while the context lasts; yields the port, which is another where 0 was asked for.

    `pages` is the folder of what is expected of tables, where that is to be shown.
    """
    try:
        server = make_server(LOOPBACK, port, _application(registry, health, pages), WSGIServer, _Quiet)
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


def _application(
    registry: CollectorRegistry, health: Health, pages: Path | None
) -> Callable[[dict[str, Any], Start], Iterable[bytes]]:
    metrics = make_wsgi_app(registry)

    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/health":
            return _health(health(), start)
        if pages is not None and environ["PATH_INFO"].startswith(PREFIX):
            return shown(pages, environ, start)
        page: Iterable[bytes] = metrics(environ, start)
        return page

    return answer


def _health(streams: Mapping[str, StreamHealth], start: Start) -> Iterable[bytes]:
    well = all(told.state in WELL for told in streams.values())
    body = {name: {"state": told.state, "reason": told.reason} for name, told in sorted(streams.items())}
    start("200 OK" if well else "503 Service Unavailable", [("Content-Type", "application/json")])
    return [json.dumps({"well": well, "streams": body}).encode()]


class _Quiet(WSGIRequestHandler):
    """A request every few seconds is no news."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the base class's
        """Say nothing."""
