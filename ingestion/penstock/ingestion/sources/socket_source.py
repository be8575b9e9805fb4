"""Lines over a TCP socket, as `nc` sends them."""

import logging
import select
import socket
from collections.abc import Iterator
from typing import Any

from penstock.core.clock import Clock
from penstock.ingestion.errors import SourceError
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.file_source import MAX_LINE_BYTES
from penstock.ingestion.sources.line_batches import MakeLineBatch
from penstock.ingestion.sources.source import EMPTY_BATCH, OneShotSource

_LOGGER = logging.getLogger(__name__)
_MAX_RECEIVE_BYTES = 262_144
_RECONNECT_INTERVAL_MS = 1_000


class SocketSource(OneShotSource):
    """Connects to whoever serves lines (`nc -lk 9999`) and reads until they hang up.

    With a clock it then connects again, and goes on trying once a second while nobody is there.

    A socket keeps nothing: lines that were received and not yet acknowledged by the broker are lost when this
    process is killed, and nobody can send them again. That is what a broker adds. What it does promise: it reads no
    faster than the broker takes, so a slow broker slows the sender down instead of filling memory.
    """

    def __init__(
        self, host: str, port: int, make_batch: MakeLineBatch, reconnect_clock: Clock | None = None
    ) -> None:
        self.description = f"socket {host}:{port}"
        self._address = (host, port)
        self._make_batch = make_batch
        self._reconnect_clock = reconnect_clock

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield lines as they come; the last one before somebody hangs up may lack its end."""
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
                    _LOGGER.warning("%s; trying again every second", last_error)
            while self._reconnect_clock() < attempted_ms + _RECONNECT_INTERVAL_MS:
                yield EMPTY_BATCH

    def _read_lines(self) -> Iterator[SourceBatch]:
        with self._connect() as connection:
            rest = b""
            while True:
                if not select.select([connection], [], [], 0)[0]:
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
                f"{self.description} cannot be reached: {error}; serve lines there, for example with `nc -lk`"
            ) from error

    def _receive(self, connection: socket.socket) -> bytes:
        try:
            return connection.recv(_MAX_RECEIVE_BYTES)
        except OSError as error:
            raise SourceError(f"{self.description} broke off: {error}; start again to reconnect") from error


def _split_lines(received: bytes, *, is_ended: bool) -> tuple[list[bytes], bytes]:
    *lines, rest = received.split(b"\n")
    if rest and (is_ended or len(rest) > MAX_LINE_BYTES):
        lines, rest = [*lines, rest], b""
    return [line.rstrip(b"\r") for line in lines], rest
