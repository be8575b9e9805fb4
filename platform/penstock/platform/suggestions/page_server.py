"""HTTP server for the suggestion page, on the loopback interface."""

import json
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from penstock.platform.errors import PortTakenError
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.suggestions.suggestion_lookup import SuggestionLookup

PAGE_FILE = Path(__file__).with_name("page.html")
StartResponse = Callable[[str, list[tuple[str, str]]], object]


@contextmanager
def serve_suggestions(lookup: SuggestionLookup, port: int) -> Iterator[str]:
    """Serve until the block ends; yield the URL. Port 0 selects a free port."""
    try:
        server = make_server(LOOPBACK, port, create_application(lookup), WSGIServer, SilentRequestHandler)
    except OSError as error:
        raise PortTakenError(
            f"cannot listen at {LOOPBACK}:{port} ({error}); use --port 0 to select a free port"
        ) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="suggestions", daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def create_application(
    lookup: SuggestionLookup,
) -> Callable[[dict[str, Any], StartResponse], Iterable[bytes]]:
    """Return the WSGI application: the page at `/`, JSON at `/suggest?prefix=ra`."""

    def handle_request(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/":
                start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
                return [PAGE_FILE.read_bytes()]
            case "/suggest":
                prefix = parse_qs(environ.get("QUERY_STRING", "")).get("prefix", [""])[0]
                start_response(
                    "200 OK", [("Content-Type", "application/json"), ("Cache-Control", "no-store")]
                )
                return [json.dumps(to_json(lookup, prefix)).encode()]
            case _:
                start_response("404 Not Found", [("Content-Type", "text/plain")])
                return [b"Not found. Use / or /suggest?prefix=...\n"]

    return handle_request


def to_json(lookup: SuggestionLookup, prefix: str) -> dict[str, object]:
    """Return the suggestions for a prefix as JSON data."""
    suggestion_set = lookup.suggest(prefix)
    bounds = {"window_start": suggestion_set.window_start, "window_end": suggestion_set.window_end}
    return {
        "prefix": prefix,
        "suggestions": suggestion_set.suggestions,
        **{name: None if bound is None else bound.isoformat() for name, bound in bounds.items()},
        "timing": suggestion_set.timing,
        "version": suggestion_set.version,
    }


class SilentRequestHandler(WSGIRequestHandler):
    """A request handler without logging: the page sends a request every second."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the base class's
        """Log nothing."""
