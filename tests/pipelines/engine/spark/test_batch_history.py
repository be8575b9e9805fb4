"""The batch history of a ledger, with batches combined where a replay may run them as one."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.pipelines.plan_strategies import build_plan

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.record_schemas import LEDGER_SCHEMA
from penstock.engine.batch.record_tables import BATCH_FIELDS
from penstock.engine.errors import ReplayError
from penstock.engine.history.batch_history import HistoryBatch, load_batch_history
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.time_policy import TimePolicy
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window

BATCH_TIMES_MS = (1_000, 4_000, 9_999, 10_000, 14_999, 15_000, 31_000)
"""The times of batches that read two records each, from alternating partitions."""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    rows = []
    for number, clock in enumerate(BATCH_TIMES_MS):
        start = number // 2 * 2
        counts = dict.fromkeys(("read", "accepted", "late", "quarantined", "duplicate", "filtered"), 0)
        rows.append({"topic": "t", "partition": number % 2, "start": start, "end": start + 2, **counts})
        rows[-1] |= {"batch_id": 3 * number, "batch_clock": clock * 1000}
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, schema=pa.schema([*LEDGER_SCHEMA, *BATCH_FIELDS])))
    return tmp_path


def load_batches(
    window: Window, ledger: Path, starts: tuple[int, int] = (0, 0), max_records: int | None = None
) -> list[tuple[int, list[tuple[int, int, int]]]]:
    ranges = [OffsetRange("t", number, start, 100) for number, start in enumerate(starts)]
    batches: list[HistoryBatch] = load_batch_history(build_plan(window), ledger, ranges, max_records)
    return [
        (batch.clock, [(r.partition, r.start, r.end) for r in batch.ranges if r.end > r.start])
        for batch in batches
    ]


def test_batches_of_one_fixed_window_are_combined(ledger: Path) -> None:
    assert load_batches(Fixed(10_000, time="processing"), ledger) == [
        (9_999, [(0, 0, 4), (1, 0, 2)]),
        (15_000, [(0, 4, 6), (1, 2, 6)]),
        (31_000, [(0, 6, 8)]),
    ]


def test_batches_are_combined_between_the_bounds_of_sliding_windows(ledger: Path) -> None:
    clocks = [clock for clock, _ in load_batches(Sliding(7_000, 5_000, time="processing"), ledger)]
    assert clocks == [1_000, 4_000, 9_999, 10_000, 14_999, 15_000, 31_000]
    clocks = [clock for clock, _ in load_batches(Sliding(10_000, 5_000, time="processing"), ledger)]
    assert clocks == [4_000, 9_999, 14_999, 15_000, 31_000]


def test_batches_of_order_windows_are_not_combined(ledger: Path) -> None:
    assert [clock for clock, _ in load_batches(Tumbling(TimePolicy(5_000)), ledger, max_records=1)] == list(
        BATCH_TIMES_MS
    )


def test_combined_batches_respect_the_maximum_size(ledger: Path) -> None:
    assert load_batches(Fixed(10_000, time="processing"), ledger, max_records=3)[:2] == [
        (9_999, [(0, 0, 2), (1, 0, 1)]),
        (9_999, [(0, 2, 4), (1, 1, 2)]),
    ]


def test_every_batch_has_a_range_for_every_partition(ledger: Path) -> None:
    ranges = [OffsetRange("t", number, 0, 100) for number in range(3)]
    batches = load_batch_history(build_plan(Tumbling(TimePolicy(5_000))), ledger, ranges, None)
    assert {tuple(span.partition for span in batch.ranges) for batch in batches} == {(0, 1, 2)}
    for before, after in pairwise(batches):
        assert [span.end for span in before.ranges] == [span.start for span in after.ranges]


def test_batches_start_at_the_given_offsets_and_missing_ones_are_refused(
    ledger: Path, tmp_path: Path
) -> None:
    window = Fixed(10_000, time="processing")
    assert load_batches(window, ledger, starts=(7, 5)) == [(15_000, [(1, 5, 6)]), (31_000, [(0, 7, 8)])]
    assert load_batches(window, ledger, starts=(8, 6)) == []
    assert load_batches(window, tmp_path / "none") == []
    rows = pa.Table.from_pylist(
        [{"topic": "t", "partition": 0, "start": 3, "end": 5, "batch_id": 0, "batch_clock": 0}],
        schema=pa.schema([*LEDGER_SCHEMA, *BATCH_FIELDS]),
    )
    write_deltalake(tmp_path / "later", rows)
    with pytest.raises(ReplayError, match="--from offset:0=3"):
        load_batches(window, tmp_path / "later")
