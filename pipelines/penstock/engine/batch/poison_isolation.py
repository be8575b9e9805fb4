"""Excludes records by their addresses: those that break user code, and those that were replayed.

A record that breaks user code is found by bisection, and counted. A record that was replayed from quarantine is in
its topic twice, and both copies are valid once its contract is looser: a stream that reads the first copy later
excludes it.

Nothing of a batch is visible before it is committed, so it can be tried as often as needed. Excluded records are
recorded beside the intent: a batch that is repeated excludes the same ones. A record is excluded only if it fails
alone and the batch works without it; any other error fails the batch.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar, runtime_checkable

from penstock.engine.batch.batch_input import BatchInput
from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.errors import PoisonLimitError

log = logging.getLogger(__name__)
ComputedT = TypeVar("ComputedT")
OffsetRanges = tuple[OffsetRange, ...]


@dataclass(frozen=True)
class ExcludedRecord:
    """An excluded record, and why: the message of user code, or the address of its replay."""

    topic: str
    partition: int
    offset: int
    reason: str
    kind: Literal["user_code_error", "replayed"] = "user_code_error"

    @property
    def quarantine_reason(self) -> str:
        """The reason, as the quarantine table has it."""
        return f"{self.kind}: {self.reason}"


ResentFinder = Callable[[OffsetRanges], Sequence[ExcludedRecord]]
"""Returns which records of some ranges were replayed to other addresses."""


def find_no_resent(_ranges: OffsetRanges) -> Sequence[ExcludedRecord]:
    """Return no record."""
    return ()


@runtime_checkable
class SplittableInput(BatchInput, Protocol):
    """Records that can be processed in parts."""

    def describe_user_error(self, error: BaseException) -> str:
        """Return the message of the user code that raised; empty if the error has another cause."""

    def restrict_to(self, ranges: OffsetRanges) -> "SplittableInput":
        """Return the records of these ranges only."""

    def exclude_records(self, excluded: Sequence[ExcludedRecord]) -> "SplittableInput":
        """Return the same records, with these marked as invalid."""


@dataclass(frozen=True)
class PoisonIsolation:
    """Computes batches. Excludes at most `limit` poison records among the retained batches; 0 for none."""

    journal: BatchJournal
    stream: str
    limit: int = 0
    find_resent: ResentFinder = find_no_resent

    def compute_isolated(
        self,
        intent: BatchIntent,
        batch_input: BatchInput,
        compute: Callable[[BatchInput], ComputedT],
        discard: Callable[[ComputedT], None] = lambda _: None,
    ) -> ComputedT:
        """Compute a batch, without the records that break it. Results of trials are discarded."""
        excluded = self._read_excluded(intent.batch_id)
        if excluded and isinstance(batch_input, SplittableInput):
            return compute(batch_input.exclude_records(excluded))
        resent = list(self.find_resent(intent.ranges))
        if resent and isinstance(batch_input, SplittableInput):
            batch_input = batch_input.exclude_records(resent)
        try:
            result = compute(batch_input)
            self._record_excluded(intent.batch_id, resent)
        except Exception as error:
            if (
                not self.limit
                or not isinstance(batch_input, SplittableInput)
                or not batch_input.describe_user_error(error)
            ):
                raise
            limit_error = PoisonLimitError(
                self.stream, intent.description, self.limit, batch_input.describe_user_error(error)
            )
            remaining = self.limit - self.journal.count_poison_before(intent.batch_id)
            poison_search = _PoisonSearch(
                batch_input, lambda trial_input: discard(compute(trial_input)), remaining, limit_error
            )
            poison_records = poison_search.find_poison(intent.ranges)
            if not poison_records:
                raise  # no record fails alone
            result = compute(batch_input.exclude_records([*resent, *poison_records]))
            self._record_excluded(intent.batch_id, [*resent, *poison_records])
            for record in poison_records:
                log.warning(
                    "Record breaks user code; quarantined (%s/%d offset %d): %s",
                    record.topic,
                    record.partition,
                    record.offset,
                    record.reason,
                )
        return result

    def _record_excluded(self, batch_id: int, excluded: Sequence[ExcludedRecord]) -> None:
        if excluded:
            self.journal.record_excluded(batch_id, [vars(record) for record in excluded])

    def _read_excluded(self, batch_id: int) -> list[ExcludedRecord]:
        return [ExcludedRecord(**entry) for entry in self.journal.read_excluded(batch_id)]


class _PoisonSearch:
    """The search through one batch. Stops once more records are found than the limit allows."""

    def __init__(
        self,
        batch_input: SplittableInput,
        compute: Callable[[BatchInput], object],
        remaining: int,
        limit_error: PoisonLimitError,
    ) -> None:
        self._batch_input = batch_input
        self._compute = compute
        self._remaining = remaining
        self._limit_error = limit_error

    def find_poison(self, ranges: OffsetRanges) -> list[ExcludedRecord]:
        """Return the records that fail alone, in ranges that fail together."""
        poison_records: list[ExcludedRecord] = []
        for record in self._bisect(
            tuple(offset_range for offset_range in ranges if offset_range.end > offset_range.start)
        ):
            poison_records.append(record)
            if len(poison_records) > self._remaining:
                raise self._limit_error
        return poison_records

    def _bisect(self, ranges: OffsetRanges) -> Iterator[ExcludedRecord]:
        for half in split_ranges(ranges):
            if reason := self._find_failure_reason(half):
                if _count_offsets(half) == 1:
                    (offset_range,) = half
                    yield ExcludedRecord(
                        offset_range.topic, offset_range.partition, offset_range.start, reason
                    )
                else:
                    yield from self._bisect(half)

    def _find_failure_reason(self, ranges: OffsetRanges) -> str:
        """Return why user code fails for these records; empty if it does not."""
        trial_input = self._batch_input.restrict_to(ranges)
        try:
            self._compute(trial_input)
        except Exception as error:
            if reason := trial_input.describe_user_error(error):
                return reason
            raise
        return ""


def split_ranges(ranges: OffsetRanges) -> list[OffsetRanges]:
    """Return two halves of about the same length; a single record is its own half."""
    total = _count_offsets(ranges)
    if total <= 1:
        return [ranges] if total else []
    first_half, second_half, remaining = [], [], total // 2
    for offset_range in ranges:
        taken_count = min(offset_range.end - offset_range.start, remaining)
        remaining -= taken_count
        split_offset = offset_range.start + taken_count
        first_half += [replace(offset_range, end=split_offset)] if taken_count else []
        second_half += [replace(offset_range, start=split_offset)] if split_offset < offset_range.end else []
    return [tuple(first_half), tuple(second_half)]


def _count_offsets(ranges: OffsetRanges) -> int:
    return sum(offset_range.end - offset_range.start for offset_range in ranges)
