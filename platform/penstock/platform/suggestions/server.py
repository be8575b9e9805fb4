"""The page and its answers, over HTTP on loopback."""

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
from penstock.platform.suggestions.lookup import Lookup

PAGE = Path(__file__).with_name("page.html")
Start = Callable[[str, list[tuple[str, str]]], object]


@contextmanager
def serving(lookup: Lookup, port: int) -> Iterator[str]:
    """Answer while the context lasts; yields the address, whose port is another where 0 was asked for."""
    try:
        server = make_server(LOOPBACK, port, application(lookup), WSGIServer, Quiet)
    except OSError as error:
        raise PortTakenError(
            f"nobody can listen at {LOOPBACK}:{port} ({error}); --port 0 takes a port that is free"
        ) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), name="suggestions", daemon=True)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def application(lookup: Lookup) -> Callable[[dict[str, Any], Start], Iterable[bytes]]:
    """Return what answers `/` with the page, and `/suggest?typed=ra` with JSON."""

    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        match environ["PATH_INFO"]:
            case "/":
                start("200 OK", [("Content-Type", "text/html; charset=utf-8")])
                return [PAGE.read_bytes()]
            case "/suggest":
                typed = parse_qs(environ.get("QUERY_STRING", "")).get("typed", [""])[0]
                start("200 OK", [("Content-Type", "application/json"), ("Cache-Control", "no-store")])
                return [json.dumps(as_json(lookup, typed)).encode()]
            case _:
                start("404 Not Found", [("Content-Type", "text/plain")])
                return [b"There is / and /suggest?typed=...\n"]

    return answer


def as_json(lookup: Lookup, typed: str) -> dict[str, object]:
    """Return the answer for a beginning, for programs."""
    found = lookup.of(typed)
    bounds = {"window_start": found.window_start, "window_end": found.window_end}
    return {
        "typed": typed,
        "suggestions": found.suggestions,
        **{name: None if at is None else at.isoformat() for name, at in bounds.items()},
        "timing": found.timing,
        "version": found.version,
    }


class Quiet(WSGIRequestHandler):
    """A request a second is no news."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name is the base class's
        """Say nothing."""
