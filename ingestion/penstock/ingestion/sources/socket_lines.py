"""Lines over a TCP socket, as `nc` sends them."""

import logging
import select
import socket
from collections.abc import Iterator
from typing import Any

from penstock.ingestion.errors import SourceError
from penstock.ingestion.ledger import Clock
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.sources.files import LONGEST_LINE
from penstock.ingestion.sources.lines import MakeBatch
from penstock.ingestion.sources.source import NOTHING, Once

_LOG = logging.getLogger(__name__)
_RECEIVED_AT_ONCE = 262_144
_TRY_AGAIN_MS = 1_000


class SocketLines(Once):
    """Connects to whoever serves lines (`nc -lk 9999`) and reads until they hang up.

    With a clock it then connects again, and goes on trying once a second while nobody is there.

    A socket keeps nothing: lines that were received and not yet acknowledged by the broker are lost when this
    process is killed, and nobody can send them again. That is what a broker adds. What it does promise: it reads no
    faster than the broker takes, so a slow broker slows the sender down instead of filling memory.
    """

    def __init__(self, host: str, port: int, make_batch: MakeBatch, again: Clock | None = None) -> None:
        self.description = f"socket {host}:{port}"
        self._address = (host, port)
        self._make_batch = make_batch
        self._again = again

    def read(self, position: Any | None) -> Iterator[Batch]:
        """Yield lines as they come; the last one before somebody hangs up may lack its end."""
        if self._again is None:
            yield from self._lines()
            return
        told = ""
        while True:
            tried = self._again()
            try:
                yield from self._lines()
                told = ""
            except SourceError as error:
                if str(error) != told:
                    told = str(error)
                    _LOG.warning("%s; trying again every second", told)
            while self._again() < tried + _TRY_AGAIN_MS:
                yield NOTHING

    def _lines(self) -> Iterator[Batch]:
        with self._connected() as connection:
            rest = b""
            while True:
                if not select.select([connection], [], [], 0)[0]:
                    yield NOTHING
                    continue
                received = self._receive(connection)
                lines, rest = _split(rest + received, ended=not received)
                if lines:
                    yield self._make_batch(lines, None)
                if not received:
                    return

    def _connected(self) -> socket.socket:
        try:
            return socket.create_connection(self._address, timeout=10)
        except OSError as error:
            raise SourceError(
                f"{self.description} cannot be reached: {error}; serve lines there, for example with `nc -lk`"
            ) from error

    def _receive(self, connection: socket.socket) -> bytes:
        try:
            return connection.recv(_RECEIVED_AT_ONCE)
        except OSError as error:
            raise SourceError(f"{self.description} broke off: {error}; start again to reconnect") from error


def _split(received: bytes, *, ended: bool) -> tuple[list[bytes], bytes]:
    *lines, rest = received.split(b"\n")
    if rest and (ended or len(rest) > LONGEST_LINE):
        lines, rest = [*lines, rest], b""
    return [line.rstrip(b"\r") for line in lines], rest
