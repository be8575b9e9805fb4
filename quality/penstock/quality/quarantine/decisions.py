"""The decisions on quarantined records: an append-only file with one line per record.

A decision to replay a record contains the bytes to send, and is written before anything is sent. Records are sent
in the order of the lines, so the delivery ledger gives the new address of each. A record has at most one
decision.
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from penstock.core.file_sync import sync_folder
from penstock.quality.errors import QuarantineError
from penstock.quality.quarantine.quarantined_records import RecordPosition

DecisionFate = Literal["replayed", "discarded"]


class QuarantineDecision(msgspec.Struct, frozen=True):
    """The decision on a record: replayed as `value`, or discarded. `why` is a note for people."""

    fate: DecisionFate
    partition: int
    offset: int
    at_ms: int
    why: str = ""
    value: bytes = b""

    @property
    def position(self) -> RecordPosition:
        """The position of the record."""
        return RecordPosition(self.partition, self.offset)


class DecisionLog:
    """The decisions on the quarantined records of a topic."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read_all(self) -> list[QuarantineDecision]:
        """Return every decision, oldest first."""
        return [decision for decision, _ in self.read_lines()]

    def read_lines(self, byte_offset: int = 0) -> Iterator[tuple[QuarantineDecision, int]]:
        """Yield decisions from a byte offset on, each with the offset of its end."""
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(byte_offset)
            for line in file:
                byte_offset += len(line)
                if not line.endswith(b"\n"):
                    return  # its writer was killed; a torn line is no decision
                yield self._decode_line(line), byte_offset

    def record(self, wanted: Sequence[QuarantineDecision]) -> list[QuarantineDecision]:
        """Append decisions and return those that were recorded. Records with a decision are skipped.

        Returned decisions survive a power cut.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock() as handle:
            decided_positions = {decision.position for decision in self.read_all()}
            new_decisions = {
                decision.position: decision
                for decision in reversed(wanted)
                if decision.position not in decided_positions
            }
            recorded = [decision for decision in wanted if new_decisions.get(decision.position) is decision]
            self._truncate_torn_line(handle)
            os.write(handle, b"".join(msgspec.json.encode(decision) + b"\n" for decision in recorded))
            os.fsync(handle)
            sync_folder(self.path.parent)
        return recorded

    @contextmanager
    def _lock(self) -> Iterator[int]:
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)

    def _truncate_torn_line(self, handle: int) -> None:
        whole_bytes = max((end for _, end in self.read_lines()), default=0)
        os.ftruncate(handle, whole_bytes)

    def _decode_line(self, line: bytes) -> QuarantineDecision:
        try:
            return msgspec.json.decode(line, type=QuarantineDecision)
        except msgspec.DecodeError as problem:
            raise QuarantineError(
                f"{self.path} is damaged ({problem}); restore it from a backup, because it lists replayed records"
            ) from problem
