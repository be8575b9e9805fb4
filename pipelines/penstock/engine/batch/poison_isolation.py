"""Computes a batch without records that break user code, and without those that were replayed.

A record that breaks user code is found by bisection, and counted. A record that was replayed from quarantine is in
its topic twice, and both copies are valid once its contract is looser: a stream that reads the first copy later
excludes it.

Nothing of a batch is visible before it is committed, so it can be tried as often as needed. Excluded records are
recorded beside the intent: a batch that is repeated excludes the same ones. A record is excluded only if it fails
alone and the batch works without it; any other error fails the batch.

Code that fails on every record is found before the search, from a few records that are spread over the batch.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from penstock.engine.batch.batch_computation import BatchComputation
from penstock.engine.batch.batch_input import BatchInput
from penstock.engine.batch.batch_result import BatchResult
from penstock.engine.batch.excluded_records import (
    ExcludedRecord,
    OffsetRanges,
    ResentFinder,
    SplittableInput,
    find_no_resent,
)
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.errors import PoisonLimitError

log = logging.getLogger(__name__)

LARGE_BATCH_FACTOR = 20
"""A batch is large when it has this many times more records than may be quarantined."""
LARGE_BATCH_SAMPLE = 3
"""How many records of a large batch are tried before the search: if each fails, so does nearly every record."""


@dataclass(frozen=True)
class PoisonIsolation:
    """Computes batches. Excludes at most `limit` poison records among the retained batches; 0 for none."""

    journal: BatchJournal
    stream: str
    limit: int = 0
    find_resent: ResentFinder = find_no_resent

    def compute_isolated(self, computation: BatchComputation, batch_input: BatchInput) -> BatchResult:
        """Compute a batch, without the records that break it."""
        if not isinstance(batch_input, SplittableInput):
            return computation.compute(batch_input)
        intent = computation.intent
        recorded = [ExcludedRecord(**entry) for entry in self.journal.read_excluded(intent.batch_id)]
        if recorded:
            return computation.compute(batch_input.exclude_records(recorded))
        resent = list(self.find_resent(intent.ranges))
        if resent:
            batch_input = batch_input.exclude_records(resent)
        poison_records: list[ExcludedRecord] = []
        try:
            result = computation.compute(batch_input)
        except Exception as error:
            reason = batch_input.describe_user_error(error)
            if self.limit and reason:
                log.warning(
                    "Batch fails in user code; searching its records (%s): %s", intent.description, reason
                )
                poison_records = self._find_poison(computation, batch_input, error)
            if not poison_records:
                raise  # user code did not fail, or no record fails alone
            result = computation.compute(batch_input.exclude_records([*resent, *poison_records]))
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

    def _find_poison(
        self, computation: BatchComputation, batch_input: SplittableInput, error: Exception
    ) -> list[ExcludedRecord]:
        """Return the records that fail alone. Raises PoisonLimitError for more of them than the limit allows."""
        intent = computation.intent
        remaining = self.limit - self.journal.count_poison_before(intent.batch_id)
        ranges = tuple(
            offset_range for offset_range in intent.ranges if offset_range.end > offset_range.start
        )
        sample = sample_records(ranges, remaining)
        failing = list(iter_failing(computation, batch_input, sample))
        if sample and len(failing) == len(sample):
            raise self._limit_error(failing[0]) from error
        suspects = [ranges]
        while any(_count_offsets(suspect) > 1 for suspect in suspects):
            suspects = list(iter_failing_halves(computation, batch_input, suspects, remaining))
            if len(suspects) > remaining:
                # Each of these ranges has a record that fails, so the search can end: one of them is named.
                first = next(bisect_failures(computation, batch_input, suspects[0]), None)
                if first is None:
                    return []  # the records fail together, and not alone
                raise self._limit_error(first) from error
        return [
            record for suspect in suspects for record in bisect_failures(computation, batch_input, suspect)
        ]

    def _limit_error(self, record: ExcludedRecord) -> PoisonLimitError:
        return PoisonLimitError(record.reason, record.address, self.limit)

    def _record_excluded(self, batch_id: int, excluded: Sequence[ExcludedRecord]) -> None:
        if excluded:
            self.journal.record_excluded(batch_id, [vars(record) for record in excluded])


def sample_records(ranges: OffsetRanges, limit: int) -> list[OffsetRange]:
    """Return single records that are spread over the ranges. If all of them fail, more than `limit` records do.

    In a large batch this is a conclusion from few records: they would all have to hit `limit` records by chance.
    """
    total = _count_offsets(ranges)
    count = LARGE_BATCH_SAMPLE if total >= LARGE_BATCH_FACTOR * (limit + 1) else limit + 1
    if total < count:
        return []
    return [_record_at(ranges, number * (total - 1) // max(count - 1, 1)) for number in range(count)]


def _record_at(ranges: OffsetRanges, number: int) -> OffsetRange:
    """Return the record of this number, counted over all ranges, as a range of its own."""
    for offset_range in ranges:
        length = offset_range.end - offset_range.start
        if number < length:
            start = offset_range.start + number
            return replace(offset_range, start=start, end=start + 1)
        number -= length
    raise IndexError(number)


def iter_failing(
    computation: BatchComputation, batch_input: SplittableInput, singles: Iterable[OffsetRange]
) -> Iterator[ExcludedRecord]:
    """Yield the records that fail alone, up to the first one that does not."""
    for single in singles:
        reason = _find_failure_reason(computation, batch_input.restrict_to((single,)))
        if not reason:
            return
        yield ExcludedRecord(single.topic, single.partition, single.start, reason)


def iter_failing_halves(
    computation: BatchComputation, batch_input: SplittableInput, suspects: Sequence[OffsetRanges], limit: int
) -> Iterator[OffsetRanges]:
    """Yield the halves of ranges that fail, up to one more than a limit."""
    count = 0
    for half in (half for suspect in suspects for half in split_ranges(suspect)):
        if _find_failure_reason(computation, batch_input.restrict_to(half)):
            yield half
            count += 1
            if count > limit:
                return


def bisect_failures(
    computation: BatchComputation, batch_input: SplittableInput, ranges: OffsetRanges
) -> Iterator[ExcludedRecord]:
    """Yield the records that fail alone, in ranges that fail together. The results of trials are released."""
    for half in split_ranges(ranges):
        if reason := _find_failure_reason(computation, batch_input.restrict_to(half)):
            if _count_offsets(half) > 1:
                yield from bisect_failures(computation, batch_input, half)
            else:
                (single,) = half
                yield ExcludedRecord(single.topic, single.partition, single.start, reason)


def _find_failure_reason(computation: BatchComputation, trial_input: SplittableInput) -> str:
    """Return why user code fails for these records; empty if it does not."""
    try:
        computation.compute(trial_input).release()
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
