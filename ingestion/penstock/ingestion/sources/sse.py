"""The source `sse`: server-sent events over HTTP."""

import http.client
import queue
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from penstock.core.secret_reference import mask_passwords
from penstock.ingestion.errors import SourceError, SourceOptionsError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.batching import MAX_BATCH_BYTES, MAX_BATCH_RECORDS
from penstock.ingestion.sources.line_batches import MakeLineBatch, make_json_batch
from penstock.ingestion.sources.record_files import MAX_LINE_BYTES
from penstock.ingestion.sources.source import EMPTY_BATCH, RecordSource, ReplayableSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind, SourceOption

_CONNECT_TIMEOUT_S = 10.0
_REPLAY_TIMEOUT_S = 10.0
_BUFFER_WAIT_S = 0.5
_HTTP_OK = 200


class ServerSentEvent(NamedTuple):
    """One event and its id, which is empty if the server sends none."""

    id: str
    data: bytes


class SseSource(ReplayableSource, SourceKind):
    """Server-sent events with JSON records.

    The source resumes with the header `Last-Event-ID`. A position is the id before a batch, its number of events,
    and its last id. The source replays as far as its server does, and raises SourceError if the server returns
    other events. Events without ids have no positions; those in flight at a kill are recorded as abandoned.
    """

    kind = "sse"
    options = (SourceOption("url", "The URL of the events.", is_required=True),)
    location = "url"

    def __init__(self, url: str, make_batch: MakeLineBatch) -> None:
        self.description = f"events of {url}"
        self._url = urlsplit(url)
        self._make_batch = make_batch
        if self._url.scheme not in ("http", "https") or not self._url.hostname:
            raise SourceOptionsError(
                f"'{mask_passwords(url)}' is not a URL of events. Start it with http:// or https://."
            )
        if self._url.username is not None:
            raise SourceOptionsError(
                f"'{mask_passwords(url)}' has a log-in in it, and a URL is shown and stored. Remove the log-in."
            )

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a client of the URL."""
        return cls(context.options["url"], make_json_batch)

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield events as they come, until the server hangs up; those of a position first, in one batch."""
        last_id = "" if position is None else str(position["after"])
        with _open_stream(self._url, last_id, self.description) as response:
            buffer = _EventBuffer(response, last_id, self.description)
            try:
                yield from self._read_batches(buffer, last_id, position or {"count": 0})
            finally:
                buffer.close()

    def _read_batches(
        self, buffer: "_EventBuffer", last_id: str, position: Mapping[str, Any]
    ) -> Iterator[SourceBatch]:
        events: list[ServerSentEvent] | None = buffer.take_replayed(int(position["count"]))
        if events and events[-1].id != position.get("last", events[-1].id):
            raise SourceError(
                f"{self.description} no longer has the {len(events)} events after '{last_id}' up to "
                f"'{position['last']}'. Use another producer name to start with the existing events."
            )
        while events is not None:
            if events:
                batch = self._make_batch([event.data for event in events], _make_position(last_id, events))
                last_id = events[-1].id
                yield (
                    batch
                    if batch.position is None
                    else replace(batch, position_after={"after": last_id, "count": 0})
                )
            else:
                yield EMPTY_BATCH
            events = buffer.take_batch()


def _make_position(last_id: str, events: list[ServerSentEvent]) -> Any | None:
    """Return where the events can be read again, which only ids make possible."""
    ids = {event.id for event in events}
    if "" in ids or last_id in ids or len(ids) < len(events):
        return None  # An event without its own id would be sent again after the id before it.
    return {"after": last_id, "count": len(events), "last": events[-1].id}


class _EventBuffer:
    """Receives events in a thread, so that the feed never blocks; buffers at most one batch."""

    def __init__(self, response: http.client.HTTPResponse, last_id: str, description: str) -> None:
        self._queue: queue.SimpleQueue[ServerSentEvent | Exception | None] = queue.SimpleQueue()
        self._buffered_bytes = 0
        self._buffer_room = threading.Condition()
        self._description = description
        self._is_ended = False
        self._is_closed = False
        threading.Thread(target=self._receive_events, args=(response, last_id), daemon=True).start()

    def take_batch(self) -> list[ServerSentEvent] | None:
        """Return the received events, possibly none; return None at the end of the stream."""
        events: list[ServerSentEvent] = []
        size_bytes = 0
        while size_bytes < MAX_BATCH_BYTES and not self._is_ended:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                return events
            self._add_item(events, item)
            size_bytes += _buffered_size(item)
        return None if self._is_ended and not events else events

    def take_replayed(self, count: int) -> list[ServerSentEvent]:
        """Return `count` events that were sent before, or fewer if the replay times out."""
        events: list[ServerSentEvent] = []
        while len(events) < count and not self._is_ended:
            try:
                self._add_item(events, self._queue.get(timeout=_REPLAY_TIMEOUT_S))
            except queue.Empty:
                break
        return events

    def _add_item(self, events: list[ServerSentEvent], item: ServerSentEvent | Exception | None) -> None:
        with self._buffer_room:
            self._buffered_bytes -= _buffered_size(item)
            self._buffer_room.notify()
        if isinstance(item, ServerSentEvent):
            events.append(item)
        elif item is None:
            self._is_ended = True
        else:
            raise SourceError(
                f"Connection lost to {self._description}: {item}. Start again to resume."
            ) from item

    def _receive_events(self, response: http.client.HTTPResponse, last_id: str) -> None:
        try:
            for event in parse_events(iter(lambda: response.readline(MAX_LINE_BYTES), b""), last_id):
                self._put_item(event)
            self._put_item(None)
        except (OSError, http.client.HTTPException, AttributeError, ValueError) as error:
            # Closing the connection ends a blocked read with one of these errors.
            if not self._is_closed:
                self._put_item(error)
        finally:
            response.close()

    def _put_item(self, item: ServerSentEvent | Exception | None) -> None:
        while not self._is_closed:
            with self._buffer_room:
                if self._buffered_bytes < MAX_BATCH_BYTES or self._buffer_room.wait(_BUFFER_WAIT_S):
                    self._buffered_bytes += _buffered_size(item)
                    self._queue.put(item)
                    return
        raise ConnectionAbortedError("the buffer is closed")

    def close(self) -> None:
        """Stop receiving events."""
        self._is_closed = True


def _buffered_size(item: ServerSentEvent | Exception | None) -> int:
    """Return the bytes of an event against the buffer limit; small events count by their number."""
    return (
        max(len(item.data), MAX_BATCH_BYTES // MAX_BATCH_RECORDS) if isinstance(item, ServerSentEvent) else 0
    )


def parse_events(lines: Iterator[bytes], last_id: str) -> Iterator[ServerSentEvent]:
    """Yield the events of a stream. An event ends at an empty line; without an id it has the id before it."""
    data: list[bytes] = []
    for line in lines:
        name, _, value = line.rstrip(b"\r\n").partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"id" and b"\0" not in value:
            last_id = value.decode("utf-8", "replace")
        elif not name and not value and data and not line.startswith(b":"):
            yield ServerSentEvent(last_id, b"\n".join(data))
            data = []


@contextmanager
def _open_stream(url: SplitResult, last_id: str, description: str) -> Iterator[http.client.HTTPResponse]:
    connection_class = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    connection = connection_class(url.hostname or "", url.port, timeout=_CONNECT_TIMEOUT_S)
    headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
    if last_id:
        headers["Last-Event-ID"] = last_id
    raw_socket: socket.socket | None = None
    try:
        connection.connect()
        raw_socket = connection.sock
        connection.request("GET", f"{url.path or '/'}?{url.query}".rstrip("?"), headers=headers)
        response = connection.getresponse()
        if response.status != _HTTP_OK:
            response.close()
            raise SourceError(
                f"Cannot read {description}: the response is {response.status} {response.reason}."
            )
        raw_socket.settimeout(None)
        yield response
    except (OSError, http.client.HTTPException) as error:
        raise SourceError(f"Cannot read {description}: {error}. Check that the server is up.") from error
    finally:
        if raw_socket is not None:
            # Ends the blocked read of the other thread, which then closes the response.
            with suppress(OSError):
                raw_socket.shutdown(socket.SHUT_RDWR)
        connection.close()
