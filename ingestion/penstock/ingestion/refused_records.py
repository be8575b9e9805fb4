"""The records that a feed refused: how many for each reason, with an example."""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.ingestion.contracts import Contract
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.sources.source import LocatingSource, RecordSource

MAX_REASONS = 50
"""Reasons beyond these are counted together: unknown fields may have any names."""
OTHER_REASONS = "other reasons"
MAX_VALUE_CHARS = 80


@dataclass(frozen=True, slots=True)
class RefusedReason:
    """A reason, the number of its records, and the first of them: detail, value and position.

    `value` is the start of the record; it is empty if the contract has personal fields. `position` is file and
    line; it is empty if the source is no file.
    """

    reason: str
    records: int
    detail: str
    value: str
    position: str


class _FirstRecord(NamedTuple):
    detail: str
    value: bytes
    batch_position: Any


class RefusedRecordCounter:
    """Counts refused records by reason."""

    def __init__(self, contract: Contract, source: RecordSource) -> None:
        self._shows_values = not any(field.personal for field in contract.fields)
        self._source = source
        self._counts: Counter[str] = Counter()
        self._first_records: dict[str, _FirstRecord] = {}

    def add_batch(self, batch: SourceBatch) -> None:
        """Count the refused records of a validated batch."""
        for index, error in sorted(batch.invalid.items()):
            is_known = error.reason in self._counts or len(self._counts) < MAX_REASONS
            reason = error.reason if is_known else OTHER_REASONS
            self._counts[reason] += 1
            if reason not in self._first_records:
                self._first_records[reason] = _FirstRecord(error.detail, batch.values[index], batch.position)

    def summarize(self) -> tuple[RefusedReason, ...]:
        """Return the reasons, the most frequent first."""
        return tuple(self._describe(reason, count) for reason, count in self._counts.most_common())

    def _describe(self, reason: str, count: int) -> RefusedReason:
        first = self._first_records[reason]
        position = (
            self._source.locate_record(first.batch_position, first.value)
            if isinstance(self._source, LocatingSource)
            else ""
        )
        return RefusedReason(
            reason, count, first.detail, shorten_value(first.value) if self._shows_values else "", position
        )


def shorten_value(value: bytes) -> str:
    """Return the start of a record as text."""
    text = " ".join(value[: 4 * MAX_VALUE_CHARS].decode("utf-8", "replace").split())
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:MAX_VALUE_CHARS]}…"
