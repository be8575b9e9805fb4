"""What was decided of quarantined records: a file of lines that only grows, one decision for each record.

A record that is to be sent again stands here with the bytes that are sent, before anything is sent. The order of
the lines is the order of sending, so the producer's ledger says where each arrived. Nothing is decided twice.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from penstock.quality.errors import QuarantineError
from penstock.quality.quarantine.records import Place

Fate = Literal["replayed", "discarded"]


class Decision(msgspec.Struct, frozen=True):
    """What becomes of the record at an address: sent again as `value`, or given up. `why` is for people."""

    fate: Fate
    partition: int
    offset: int
    at_ms: int
    why: str = ""
    value: bytes = b""

    @property
    def place(self) -> Place:
        """Where the record is that was decided on."""
        return Place(self.partition, self.offset)


class Decisions:
    """The decisions on one topic's quarantined records."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def all(self) -> list[Decision]:
        """Return every decision, in the order in which they were taken."""
        return [decision for decision, _ in self.lines()]

    def lines(self, place: int = 0) -> Iterator[tuple[Decision, int]]:
        """Yield decisions from a byte of the file on, and where each ends."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(place)
            for line in file:
                place += len(line)
                if not line.endswith(b"\n"):
                    return  # its writer was killed: what is not whole was not decided
                yield self._read(line), place

    def take(self, wanted: Sequence[Decision]) -> list[Decision]:
        """Write decisions down, and return those that were taken: no record is decided on twice.

        What is returned survives a power cut.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._alone() as handle:
            known = {decision.place for decision in self.all()}
            fresh = {decision.place: decision for decision in reversed(wanted) if decision.place not in known}
            taken = [decision for decision in wanted if fresh.get(decision.place) is decision]
            self._cut_torn_end(handle)
            os.write(handle, b"".join(msgspec.json.encode(decision) + b"\n" for decision in taken))
            os.fsync(handle)
        return taken

    @contextmanager
    def _alone(self) -> Iterator[int]:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)

    def _cut_torn_end(self, handle: int) -> None:
        whole = max((end for _, end in self.lines()), default=0)
        os.ftruncate(handle, whole)

    def _read(self, line: bytes) -> Decision:
        try:
            return msgspec.json.decode(line, type=Decision)
        except msgspec.DecodeError as problem:
            raise QuarantineError(
                f"{self.path} cannot be read ({problem}): restore it from a backup, for it says what was sent again"
            ) from problem
