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
class Records:
    """Records by partition and offset. A batch fails with a poison record, or with all of `together`."""

    spans: tuple[OffsetRange, ...]
    bad: frozenset[Address]
    together: frozenset[Address] = frozenset()
    aside: frozenset[Address] = frozenset()

    @property
    def addresses(self) -> set[Address]:
        every = {(s.partition, offset) for s in self.spans for offset in range(s.start, s.end)}
        return every - self.aside

    def describe_user_error(self, problem: BaseException) -> str:
        return str(problem) if isinstance(problem, ZeroDivisionError) else ""

    def restrict_to(self, spans: tuple[OffsetRange, ...]) -> "Records":
        return replace(self, spans=spans)

    def exclude_records(self, poisoned: Sequence[ExcludedRecord]) -> "Records":
        return replace(self, aside=frozenset((each.partition, each.offset) for each in poisoned))

    def compute_partials(self) -> pa.Table:
        raise NotImplementedError

    read_invalid_records = compute_partials

    def read_late_records(self, windows: pa.Table) -> pa.Table:
        raise NotImplementedError


@dataclass(frozen=True)
class Computed:
    """The records that were computed."""

    addresses: set[Address]

    def release(self) -> None:
        """Nothing is stored for them."""


@dataclass
class Trials:
    """Computes records without an engine, and counts how often."""

    intent: BatchIntent
    error: Exception = field(default_factory=lambda: ZeroDivisionError("by one's own code"))
    fails_always: bool = False
    calls: int = 0

    def compute(self, reading: BatchInput) -> Computed:
        assert isinstance(reading, Records)
        self.calls += 1
        there = reading.addresses
        if self.fails_always or there & reading.bad or (reading.together and reading.together <= there):
            raise self.error
        return Computed(there)


def isolate(guard: PoisonIsolation, trials: Trials, records: "Records") -> set[Address]:
    computed = guard.compute_isolated(cast("BatchComputation", trials), records)
    return cast("Computed", computed).addresses


def batch(*lengths: int) -> tuple[OffsetRange, ...]:
    return tuple(OffsetRange("t", partition, 10, 10 + length) for partition, length in enumerate(lengths))


def intent(spans: tuple[OffsetRange, ...], number: int = 0) -> BatchIntent:
    return BatchIntent(number, "data", 0, 1, spans, number)


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=3),
    st.sets(st.tuples(st.integers(0, 2), st.integers(10, 49)), max_size=5),
)
def test_exactly_the_records_that_fail_alone_are_quarantined(
    tmp_path_factory: pytest.TempPathFactory, lengths: list[int], bad: set[Address]
) -> None:
    journal = BatchJournal(tmp_path_factory.mktemp("journal"))
    records = Records(batch(*lengths), frozenset(bad))
    found = isolate(PoisonIsolation(journal, "s", 5), Trials(intent(records.spans)), records)
    assert found == records.addresses - bad
    blamed = {(each["partition"], each["offset"]) for each in journal.read_excluded(0)}
    assert blamed == records.addresses & bad


@given(st.lists(st.integers(0, 50), min_size=1, max_size=4))
def test_halves_have_every_record_once(lengths: list[int]) -> None:
    spans = batch(*lengths)
    parts = [Records(half, frozenset()).addresses for half in split_ranges(spans)]
    assert sorted(address for part in parts for address in part) == sorted(
        Records(spans, frozenset()).addresses
    )


@pytest.fixture
def journal(tmp_path: Path) -> BatchJournal:
    return BatchJournal(tmp_path)


def test_a_repeated_batch_excludes_the_same_records_without_a_search(journal: BatchJournal) -> None:
    records = Records(batch(1000), frozenset({(0, 700)}))
    guard, trials, repeated = (
        PoisonIsolation(journal, "s", 1),
        Trials(intent(records.spans)),
        Trials(intent(records.spans)),
    )
    first = isolate(guard, trials, records)
    assert trials.calls < 25, "a thousand records are halved ten times"
    assert isolate(guard, repeated, records) == first
    assert repeated.calls == 1


def test_records_that_fail_only_together_fail_the_batch(journal: BatchJournal) -> None:
    records = Records(batch(8), frozenset(), together=frozenset({(0, 11), (0, 16)}))
    with pytest.raises(ZeroDivisionError):
        isolate(PoisonIsolation(journal, "s", 5), Trials(intent(records.spans)), records)
    assert journal.read_excluded(0) == []


def test_other_errors_exclude_no_record(journal: BatchJournal) -> None:
    trials = Trials(intent(batch(8)), OSError("the broker is gone"), fails_always=True)
    with pytest.raises(OSError, match="broker"):
        isolate(PoisonIsolation(journal, "s", 5), trials, Records(batch(8), frozenset()))
    assert trials.calls == 1


def test_the_limit_applies_across_batches_and_stops_the_search(journal: BatchJournal) -> None:
    guard = PoisonIsolation(journal, "s", 3)
    few = Records(batch(10), frozenset({(0, 11), (0, 12)}))
    isolate(guard, Trials(intent(few.spans, 0)), few)
    many = Records(batch(1000), frozenset((0, offset) for offset in range(10, 1010)))
    trials = Trials(intent(many.spans, 1))
    with pytest.raises(
        PoisonLimitError,
        match=r"on more than 3 records, the last in batch 1, offsets t/0 10 to 1010 \(by one's own",
    ):
        isolate(guard, trials, many)
    assert trials.calls < 25
    assert journal.read_excluded(1) == []


def test_without_a_limit_there_is_no_search(journal: BatchJournal) -> None:
    records = Records(batch(10), frozenset({(0, 11)}))
    trials = Trials(intent(records.spans))
    with pytest.raises(ZeroDivisionError):
        isolate(PoisonIsolation(journal, "s", 0), trials, records)
    assert trials.calls == 1


def test_excluded_replayed_records_are_recorded_and_are_no_poison(
    tmp_path: Path,
) -> None:
    journal = BatchJournal(tmp_path)
    records = Records(batch(9), frozenset({(0, 15)}))
    again = [ExcludedRecord("t", 0, 12, "sent as 0:30", "replayed")]
    guard = PoisonIsolation(journal, "s", 1, lambda _: again)
    assert isolate(guard, Trials(intent(records.spans)), records) == records.addresses - {
        (0, 12),
        (0, 15),
    }
    assert [(each["offset"], each["kind"]) for each in journal.read_excluded(0)] == [
        (12, "replayed"), (15, "user_code_error"),
    ]  # fmt: skip
    assert journal.count_poison_before(1) == 1
    later = PoisonIsolation(journal, "s", 1, lambda _: [])
    assert isolate(later, Trials(intent(records.spans)), records) == records.addresses - {
        (0, 12),
        (0, 15),
    }
    clean = Records(batch(9), frozenset())
    assert isolate(guard, Trials(intent(clean.spans, 1)), clean) == clean.addresses - {(0, 12)}
    assert [each["offset"] for each in journal.read_excluded(1)] == [12]
