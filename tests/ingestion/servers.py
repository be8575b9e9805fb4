"""Servers of lines over TCP and of events over HTTP, and a feed in a thread."""

import itertools
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from typing import Self

from tests.http_server import run_http_server

from penstock.ingestion.feed import Feed, FeedLimits, FeedSummary


@contextmanager
def run_line_server(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Run `serve` for one client after the other; yield the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def accept() -> None:
            while True:
                try:
                    client, _ = listening.accept()
                except OSError:
                    return
                with client:
                    try:
                        serve(client)
                    except OSError:
                        continue

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(10)


@contextmanager
def run_event_server(events: list[bytes]) -> Iterator[str]:
    """Serve numbered events after `Last-Event-ID`; each connection can read 500 events further."""
    connections = itertools.count(1)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            first = int(self.headers.get("Last-Event-ID", "-1")) + 1
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            with suppress(ConnectionError):
                self._send(first)

        def _send(self, first: int) -> None:
            self.wfile.write(b": a comment\n\n")
            for number, event in enumerate(events[first : 500 * next(connections)], first):
                data = b"".join(b"data: %s\n" % line for line in event.split(b"\n"))
                self.wfile.write(b"id: %d\nevent: reading\n%s\n" % (number, data))

        def log_message(self, *_: object) -> None:
            pass

    with run_http_server(Handler) as address:
        yield f"{address}/events"


class RunningFeed:
    """A feed in a thread, stopped at the end of the `with` block."""

    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.summary: FeedSummary | None = None
        self.error: BaseException | None = None

    def _run(self) -> None:
        try:
            self.summary = self._feed.run(self._stop, limits=FeedLimits(finish_ms=30_000))
        except BaseException as error:  # noqa: BLE001 - raised in the test
            self.error = error

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)
        if self.error is not None:
            raise self.error
