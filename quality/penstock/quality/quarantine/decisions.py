"""The decisions on quarantined records: a file with one line per record, which only grows.

A decision to replay a record contains the bytes to send, and is written before anything is sent. Records are sent
in the order of the lines, so the delivery ledger gives the new address of each. A record has at most one
decision.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from penstock.core.checksums import format_checksum_line, verify_checksum
from penstock.core.errors import DamagedFileError
from penstock.core.files import file_lock, write_atomically
from penstock.quality.errors import QuarantineError
from penstock.quality.quarantine.quarantined_records import RecordPosition

DecisionFate = Literal["replayed", "discarded"]
LOCK_TIMEOUT_S = 30.0


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
        for line in self._read_content()[byte_offset:].splitlines(keepends=True):
            byte_offset += len(line)
            yield self._decode_line(line), byte_offset

    def record(self, wanted: Sequence[QuarantineDecision]) -> list[QuarantineDecision]:
        """Append decisions and return those that were recorded. Records with a decision are skipped.

        Returned decisions survive a power cut. One that happens meanwhile leaves all of them or none.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(self.path.with_suffix(".lock"), LOCK_TIMEOUT_S):
            decided_positions = {decision.position for decision in self.read_all()}
            new_decisions = {
                decision.position: decision
                for decision in reversed(wanted)
                if decision.position not in decided_positions
            }
            recorded = [decision for decision in wanted if new_decisions.get(decision.position) is decision]
            if recorded:
                lines = b"".join(msgspec.json.encode(decision) + b"\n" for decision in recorded)
                content = self._read_content() + lines
                write_atomically(self.path, content + format_checksum_line(content))
        return recorded

    def _read_content(self) -> bytes:
        """Return the lines of all decisions. Release 0.1.0 wrote no checksum, and its last line may be torn."""
        if not self.path.exists() or not (data := self.path.read_bytes()):
            return b""
        try:
            content = bytes(verify_checksum(self.path, data))
        except DamagedFileError as damage:
            raise self._describe_damage(damage.problem) from damage
        return content[: content.rfind(b"\n") + 1]

    def _decode_line(self, line: bytes) -> QuarantineDecision:
        try:
            return msgspec.json.decode(line, type=QuarantineDecision)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise self._describe_damage(problem) from problem

    def _describe_damage(self, problem: object) -> QuarantineError:
        return QuarantineError(
            f"{self.path} is damaged ({problem}); restore it from a backup, because it lists replayed records"
        )
