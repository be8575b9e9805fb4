"""Which records are quarantined when a batch fails, over batches with known poison records."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.batch.batch_computation import BatchComputation
from penstock.engine.batch.batch_input import BatchInput
from penstock.engine.batch.excluded_records import ExcludedRecord
from penstock.engine.batch.intent import BatchIntent, OffsetRange
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.poison_isolation import PoisonIsolation, split_ranges
from penstock.engine.errors import PoisonLimitError

Address = tuple[int, int]


@dataclass(frozen=True)
class PoisonedInput:
    """Records by partition and offset. A batch fails with a poison record, or with all of `poison_together`."""

    ranges: tuple[OffsetRange, ...]
    poison: frozenset[Address]
    poison_together: frozenset[Address] = frozenset()
    excluded: frozenset[Address] = frozenset()

    @property
    def addresses(self) -> set[Address]:
        all_addresses = {(s.partition, offset) for s in self.ranges for offset in range(s.start, s.end)}
        return all_addresses - self.excluded

    def describe_user_error(self, error: BaseException) -> str:
        return str(error) if isinstance(error, ZeroDivisionError) else ""

    def restrict_to(self, ranges: tuple[OffsetRange, ...]) -> "PoisonedInput":
        return replace(self, ranges=ranges)

    def exclude_records(self, excluded_records: Sequence[ExcludedRecord]) -> "PoisonedInput":
        return replace(self, excluded=frozenset((each.partition, each.offset) for each in excluded_records))

    def compute_partials(self) -> pa.Table:
        raise NotImplementedError

    read_invalid_records = compute_partials

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        raise NotImplementedError


@dataclass(frozen=True)
class ComputedRecords:
    """The records that were computed."""

    addresses: set[Address]

    def release(self) -> None:
        """Nothing is stored for them."""


@dataclass
class CountedComputation:
    """Computes records without an engine, and counts how often."""

    intent: BatchIntent
    error: Exception = field(default_factory=lambda: ZeroDivisionError("in user code"))
    fails_always: bool = False
    calls: int = 0

    def compute(self, batch_input: BatchInput) -> ComputedRecords:
        assert isinstance(batch_input, PoisonedInput)
        self.calls += 1
        addresses = batch_input.addresses
        if (
            self.fails_always
            or addresses & batch_input.poison
            or (batch_input.poison_together and batch_input.poison_together <= addresses)
        ):
            raise self.error
        return ComputedRecords(addresses)


def compute_isolated_addresses(
    isolation: PoisonIsolation, computation: CountedComputation, records: "PoisonedInput"
) -> set[Address]:
    computed = isolation.compute_isolated(cast("BatchComputation", computation), records)
    return cast("ComputedRecords", computed).addresses


def make_ranges(*lengths: int) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange("t", partition, 10, 10 + length) for partition, length in enumerate(lengths))


def make_intent(ranges: tuple[OffsetRange, ...], number: int = 0) -> BatchIntent:
    return BatchIntent(number, "data", 0, 1, ranges, number)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=3),
    st.sets(st.tuples(st.integers(0, 2), st.integers(10, 49)), max_size=5),
)
def test_exactly_the_records_that_fail_alone_are_quarantined(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], poison: set[Address]
) -> None:
    journal = BatchJournal(tmp_path_factory.mktemp("journal"))
    records = PoisonedInput(make_ranges(*lengths), frozenset(poison))
    addresses = compute_isolated_addresses(
        PoisonIsolation(journal, "s", 5), CountedComputation(make_intent(records.ranges)), records
    )
    assert addresses == records.addresses - poison
    excluded = {(each["partition"], each["offset"]) for each in journal.read_excluded(0)}
    assert excluded == records.addresses & poison


@given(st.lists(st.integers(0, 50), min_size=1, max_size=4))
def test_halves_have_every_record_once(lengths: list[int]) -> None:
    ranges = make_ranges(*lengths)
    halves = [PoisonedInput(half, frozenset()).addresses for half in split_ranges(ranges)]
    assert sorted(address for addresses in halves for address in addresses) == sorted(
        PoisonedInput(ranges, frozenset()).addresses
    )


@pytest.fixture
def journal(tmp_path: Path) -> BatchJournal:
    return BatchJournal(tmp_path)


def test_a_repeated_batch_excludes_the_same_records_without_a_search(journal: BatchJournal) -> None:
    records = PoisonedInput(make_ranges(1000), frozenset({(0, 700)}))
    isolation, computation, repeated_computation = (
        PoisonIsolation(journal, "s", 1),
        CountedComputation(make_intent(records.ranges)),
        CountedComputation(make_intent(records.ranges)),
    )
    first_addresses = compute_isolated_addresses(isolation, computation, records)
    assert computation.calls < 25, "a thousand records are halved ten times"
    assert compute_isolated_addresses(isolation, repeated_computation, records) == first_addresses
    assert repeated_computation.calls == 1


def test_records_that_fail_only_together_fail_the_batch(journal: BatchJournal) -> None:
    records = PoisonedInput(make_ranges(8), frozenset(), poison_together=frozenset({(0, 11), (0, 16)}))
    with pytest.raises(ZeroDivisionError):
        compute_isolated_addresses(
            PoisonIsolation(journal, "s", 5), CountedComputation(make_intent(records.ranges)), records
        )
    assert journal.read_excluded(0) == []


def test_other_errors_exclude_no_record(journal: BatchJournal) -> None:
    computation = CountedComputation(
        make_intent(make_ranges(8)), OSError("the broker is gone"), fails_always=True
    )
    with pytest.raises(OSError, match="broker"):
        compute_isolated_addresses(
            PoisonIsolation(journal, "s", 5), computation, PoisonedInput(make_ranges(8), frozenset())
        )
    assert computation.calls == 1


def test_the_limit_applies_across_batches_and_stops_the_search(journal: BatchJournal) -> None:
    isolation = PoisonIsolation(journal, "s", 3)
    few_poison = PoisonedInput(make_ranges(10), frozenset({(0, 11), (0, 12)}))
    compute_isolated_addresses(isolation, CountedComputation(make_intent(few_poison.ranges, 0)), few_poison)
    many_poison = PoisonedInput(make_ranges(1000), frozenset((0, offset) for offset in range(10, 1010)))
    computation = CountedComputation(make_intent(many_poison.ranges, 1))
    with pytest.raises(
        PoisonLimitError,
        match=r"at t/0 offset 10\. User code fails on more than 3 records\. Fix",
    ):
        compute_isolated_addresses(isolation, computation, many_poison)
    assert computation.calls == 4, "the batch, and its first, middle and last record"
    assert journal.read_excluded(1) == []


def test_without_a_limit_there_is_no_search(journal: BatchJournal) -> None:
    records = PoisonedInput(make_ranges(10), frozenset({(0, 11)}))
    computation = CountedComputation(make_intent(records.ranges))
    with pytest.raises(ZeroDivisionError):
        compute_isolated_addresses(PoisonIsolation(journal, "s", 0), computation, records)
    assert computation.calls == 1


def test_excluded_replayed_records_are_recorded_and_are_no_poison(
    tmp_path: Path,
) -> None:
    journal = BatchJournal(tmp_path)
    records = PoisonedInput(make_ranges(9), frozenset({(0, 15)}))
    replayed = [ExcludedRecord("t", 0, 12, "sent as 0:30", "replayed")]
    isolation = PoisonIsolation(journal, "s", 1, lambda _: replayed)
    assert compute_isolated_addresses(
        isolation, CountedComputation(make_intent(records.ranges)), records
    ) == records.addresses - {
        (0, 12),
        (0, 15),
    }
    assert [(each["offset"], each["kind"]) for each in journal.read_excluded(0)] == [
        (12, "replayed"), (15, "user_code_error"),
    ]  # fmt: skip
    assert journal.count_poison_before(1) == 1
    later_isolation = PoisonIsolation(journal, "s", 1, lambda _: [])
    assert compute_isolated_addresses(
        later_isolation, CountedComputation(make_intent(records.ranges)), records
    ) == records.addresses - {
        (0, 12),
        (0, 15),
    }
    clean_records = PoisonedInput(make_ranges(9), frozenset())
    assert compute_isolated_addresses(
        isolation, CountedComputation(make_intent(clean_records.ranges, 1)), clean_records
    ) == clean_records.addresses - {(0, 12)}
    assert [each["offset"] for each in journal.read_excluded(1)] == [12]


def test_a_search_ends_when_more_ranges_fail_than_the_limit_allows(journal: BatchJournal) -> None:
    """One record of twenty fails: eleven ranges that fail are found long before eleven records."""
    records = PoisonedInput(make_ranges(4_000), frozenset((0, offset) for offset in range(15, 4_010, 20)))
    computation = CountedComputation(make_intent(records.ranges))
    with pytest.raises(
        PoisonLimitError, match=r"at t/0 offset 15\. User code fails on more than 10 records\."
    ):
        compute_isolated_addresses(PoisonIsolation(journal, "s", 10), computation, records)
    assert computation.calls < 40
    assert journal.read_excluded(0) == []
