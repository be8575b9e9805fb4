"""Server-sent events over HTTP."""

import http.client
import queue
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from penstock.ingestion.errors import SourceError, SourceOptionsError
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.cutting import BATCH, BATCH_BYTES
from penstock.ingestion.sources.files import LONGEST_LINE
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

    A position is the id before its batch, how many it had, and the last of them: the source repeats itself as far
    as its server does, and is refused where that gives other events by then. What is acknowledged is not asked for
    again. Events without ids have no positions: what of them is in flight at a kill is written down as abandoned.
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
                yield from self._batches(arriving, last, position or {"count": 0})
            finally:
                arriving.leave()

    def _batches(self, arriving: "_Arriving", last: str, position: Mapping[str, Any]) -> Iterator[Batch]:
        events: list[Event] | None = arriving.repeated(int(position["count"]))
        if events and events[-1].id != position.get("last", events[-1].id):
            raise SourceError(
                f"{self.description} no longer has the {len(events)} events after '{last}', up to "
                f"'{position['last']}', and sent others: use another producer name to begin with what there is"
            )
        while events is not None:
            if events:
                batch = self._make_batch([event.data for event in events], _position(last, events))
                last = events[-1].id
                yield batch if batch.position is None else replace(batch, after={"after": last, "count": 0})
            else:
                yield NOTHING
            events = arriving.take()


def _position(last: str, events: list[Event]) -> Any | None:
    """Return where the events can be read again, which only ids make possible."""
    ids = {event.id for event in events}
    if "" in ids or last in ids or len(ids) < len(events):
        return None  # One that has no id of its own would come again after the id before it.
    return {"after": last, "count": len(events), "last": events[-1].id}


class _Arriving:
    """Reads events in a thread of its own, so that nobody waits in a read; holds no more than a batch."""

    def __init__(self, response: http.client.HTTPResponse, last: str, description: str) -> None:
        self._queue: queue.SimpleQueue[Event | Exception | None] = queue.SimpleQueue()
        self._held = 0
        self._room = threading.Condition()
        self._description = description
        self._ended = False
        self._left = False
        threading.Thread(target=self._read, args=(response, last), daemon=True).start()

    def take(self) -> list[Event] | None:
        """Return what has come, which may be nothing; None at the end."""
        events: list[Event] = []
        size = 0
        while size < BATCH_BYTES and not self._ended:
            try:
                found = self._queue.get_nowait()
            except queue.Empty:
                return events
            self._add(events, found)
            size += _weight(found)
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
        with self._room:
            self._held -= _weight(found)
            self._room.notify()
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
            with self._room:
                if self._held < BATCH_BYTES or self._room.wait(_LOOK_SECONDS):
                    self._held += _weight(found)
                    self._queue.put(found)
                    return
        raise ConnectionAbortedError("nobody reads these events any more")

    def leave(self) -> None:
        """Say that nobody takes events any more."""
        self._left = True


def _weight(found: Event | Exception | None) -> int:
    """Return what counts of an event where a batch of them is as much as may be held: of a small one its number."""
    return max(len(found.data), BATCH_BYTES // BATCH) if isinstance(found, Event) else 0


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
