"""Server-sent events over HTTP."""

import http.client
import queue
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from penstock.ingestion.errors import SourceError, SourceOptionsError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.files import BATCH, LONGEST_LINE
from penstock.ingestion.sources.lines import MakeBatch
from penstock.ingestion.sources.source import NOTHING, Repeatable

_CONNECT_SECONDS = 10.0
_REPEAT_SECONDS = 10.0
_LOOK_SECONDS = 0.5
_OK = 200


class Event(NamedTuple):
    """One event, and the id by which its server knows it; empty where it gives none."""

    id: str
    data: bytes


class ServerSentEvents(Repeatable):
    """Reads events, and resumes after the last one it knows by `Last-Event-ID`, as the standard has it.

    A position is the id before its batch, and how many it had; the source repeats itself as far as its server does.
    Events without ids have no positions: what of them is in flight at a kill is written down as abandoned.
    """

    def __init__(self, url: str, make_batch: MakeBatch) -> None:
        self.description = f"events of {url}"
        self._url = urlsplit(url)
        self._make_batch = make_batch
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise SourceOptionsError(
                f"'{url}' is no address of events; it has to begin with http:// or https://"
            )

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield events as they come, until the server hangs up; those of a position first, in one batch."""
        last = "" if position is None else str(position["after"])
        with _opened(self._url, last, self.description) as response:
            arriving = _Arriving(response, last, self.description)
            try:
                yield from self._batches(arriving, last, 0 if position is None else int(position["count"]))
            finally:
                arriving.leave()

    def _batches(self, arriving: "_Arriving", last: str, again: int) -> Iterator[Batch]:
        events: list[Event] | None = arriving.repeated(again)
        while events is not None:
            if events:
                yield self._make_batch([event.data for event in events], _position(last, events))
                last = events[-1].id
            else:
                yield NOTHING
            events = arriving.take()


def _position(last: str, events: list[Event]) -> Any | None:
    """Return where the events can be read again, which only ids make possible."""
    return {"after": last, "count": len(events)} if all(event.id for event in events) else None


class _Arriving:
    """Reads events in a thread of its own, so that nobody waits in a read; holds no more than a batch."""

    def __init__(self, response: http.client.HTTPResponse, last: str, description: str) -> None:
        self._queue: queue.Queue[Event | Exception | None] = queue.Queue(BATCH)
        self._description = description
        self._ended = False
        self._left = False
        threading.Thread(target=self._read, args=(response, last), daemon=True).start()

    def take(self) -> list[Event] | None:
        """Return what has come, which may be nothing; None at the end."""
        events: list[Event] = []
        while len(events) < BATCH and not self._ended:
            try:
                found = self._queue.get_nowait()
            except queue.Empty:
                return events
            self._add(events, found)
        return None if self._ended and not events else events

    def repeated(self, count: int) -> list[Event]:
        """Return so many events that were sent before, or those that come again within some seconds."""
        events: list[Event] = []
        while len(events) < count and not self._ended:
            try:
                self._add(events, self._queue.get(timeout=_REPEAT_SECONDS))
            except queue.Empty:
                break
        return events

    def _add(self, events: list[Event], found: Event | Exception | None) -> None:
        if isinstance(found, Event):
            events.append(found)
        elif found is None:
            self._ended = True
        else:
            raise SourceError(f"{self._description} broke off: {found}; start again to resume") from found

    def _read(self, response: http.client.HTTPResponse, last: str) -> None:
        try:
            for event in parsed(iter(lambda: response.readline(LONGEST_LINE), b""), last):
                self._put(event)
            self._put(None)
        except (OSError, http.client.HTTPException, AttributeError, ValueError) as error:
            # Closing the connection ends a read that is under way with an error of any of these kinds.
            if not self._left:
                self._put(error)
        finally:
            response.close()

    def _put(self, found: Event | Exception | None) -> None:
        while not self._left:
            with suppress(queue.Full):
                self._queue.put(found, timeout=_LOOK_SECONDS)
                return
        raise ConnectionAbortedError("nobody reads these events any more")

    def leave(self) -> None:
        """Say that nobody takes events any more."""
        self._left = True


def parsed(lines: Iterator[bytes], last: str) -> Iterator[Event]:
    """Yield the events of a stream; an event ends at an empty line and keeps the id before it if it has none."""
    data: list[bytes] = []
    for line in lines:
        name, _, value = line.rstrip(b"\r\n").partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"id" and b"\0" not in value:
            last = value.decode("utf-8", "replace")
        elif not name and not value and data and not line.startswith(b":"):
            yield Event(last, b"\n".join(data))
            data = []


@contextmanager
def _opened(url: SplitResult, last: str, description: str) -> Iterator[http.client.HTTPResponse]:
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = kind(url.hostname or "", url.port, timeout=_CONNECT_SECONDS)
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if last:
        headers["Last-Event-ID"] = last
    wire: socket.socket | None = None
    try:
        connection.connect()
        wire = connection.sock
        connection.request("GET", f"{url.path or '/'}?{url.query}".rstrip("?"), headers=headers)
        response = connection.getresponse()
        if response.status != _OK:
            response.close()
            raise SourceError(
                f"{description} cannot be read: the answer is {response.status} {response.reason}"
            )
        wire.settimeout(None)
        yield response
    except (OSError, http.client.HTTPException) as error:
        raise SourceError(f"{description} cannot be read: {error}; is the server up?") from error
    finally:
        if wire is not None:
            # Ends a read that is under way in the other thread, which then closes the response.
            with suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)
        connection.close()
