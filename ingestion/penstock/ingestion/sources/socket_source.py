"""The source `socket`: lines from a TCP server, such as `nc -lk 9999`."""

import logging
import selectors
import socket
from collections.abc import Iterator
from typing import Any

from penstock.core.clock import Clock
from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.line_batches import MakeLineBatch, TextLineParser, make_json_batch
from penstock.ingestion.sources.record_files import MAX_LINE_BYTES
from penstock.ingestion.sources.source import EMPTY_BATCH, OneShotSource, RecordSource
from penstock.ingestion.sources.source_kind import SourceContext, SourceKind, SourceOption

_LOGGER = logging.getLogger(__name__)
_MAX_RECEIVE_BYTES = 262_144
_RECONNECT_INTERVAL_MS = 1_000


class SocketSource(OneShotSource, SourceKind):
    """Lines from a TCP server, as JSON or as text.

    The source ends when the server closes the connection. With a clock it reconnects once a second instead.

    A socket cannot replay: lines that were received but not acknowledged by the broker are lost if this process is
    killed. Backpressure is guaranteed: the source reads only as fast as the broker accepts records.
    """

    kind = "socket"
    options = (
        SourceOption("address", "The address to serve or to connect to, host:port.", is_required=True),
        SourceOption("text", "Lines are text, not JSON.", is_flag=True),
        SourceOption("follow", "Reconnect after the server closes the connection.", is_flag=True),
    )
    location = "address"

    def __init__(
        self, host: str, port: int, make_batch: MakeLineBatch, reconnect_clock: Clock | None = None
    ) -> None:
        self.description = f"socket {host}:{port}"
        self._address = (host, port)
        self._make_batch = make_batch
        self._reconnect_clock = reconnect_clock

    @classmethod
    def open(cls, context: SourceContext) -> RecordSource:
        """Return a client of the server at the address."""
        is_text, follow = context.options.get("text"), context.options.get("follow")
        make_batch = TextLineParser(context.row_reader, context.clock) if is_text else make_json_batch
        return cls(*context.parse_address(), make_batch, context.clock if follow else None)

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield lines as they arrive; the last line before a disconnect may lack its line ending."""
        if self._reconnect_clock is None:
            yield from self._read_lines()
            return
        last_error = ""
        while True:
            attempted_ms = self._reconnect_clock()
            try:
                yield from self._read_lines()
                last_error = ""
            except SourceError as error:
                if str(error) != last_error:
                    last_error = str(error)
                    _LOGGER.warning("Connection failed; retrying every second: %s", last_error)
            while self._reconnect_clock() < attempted_ms + _RECONNECT_INTERVAL_MS:
                yield EMPTY_BATCH

    def _read_lines(self) -> Iterator[SourceBatch]:
        # Not select(): it refuses descriptors above 1023, which a process with many open files has.
        with self._connect() as connection, selectors.DefaultSelector() as selector:
            selector.register(connection, selectors.EVENT_READ)
            rest = b""
            while True:
                if not selector.select(timeout=0):
                    yield EMPTY_BATCH
                    continue
                received = self._receive(connection)
                lines, rest = _split_lines(rest + received, is_ended=not received)
                if lines:
                    yield self._make_batch(lines, None)
                if not received:
                    return

    def _connect(self) -> socket.socket:
        try:
            return socket.create_connection(self._address, timeout=10)
        except OSError as error:
            raise SourceError(
                f"Cannot connect to {self.description}: {error}. Serve lines there, for example with `nc -lk`."
            ) from error

    def _receive(self, connection: socket.socket) -> bytes:
        try:
            return connection.recv(_MAX_RECEIVE_BYTES)
        except OSError as error:
            raise SourceError(
                f"Connection lost to {self.description}: {error}. Start again to reconnect."
            ) from error


def _split_lines(received: bytes, *, is_ended: bool) -> tuple[list[bytes], bytes]:
    *lines, rest = received.split(b"\n")
    if rest and (is_ended or len(rest) > MAX_LINE_BYTES):
        lines, rest = [*lines, rest], b""
    return [line.rstrip(b"\r") for line in lines], rest
