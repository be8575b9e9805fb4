"""Which batches a ledger tells of, and which of them may be run as one."""

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

CLOCKS = (1_000, 4_000, 9_999, 10_000, 14_999, 15_000, 31_000)
"""Of batches that read two records each, of one partition after the other."""


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    rows = []
    for number, clock in enumerate(CLOCKS):
        start = number // 2 * 2
        counts = dict.fromkeys(("read", "folded", "late", "quarantined", "duplicate", "filtered"), 0)
        rows.append({"topic": "t", "partition": number % 2, "start": start, "end": start + 2, **counts})
        rows[-1] |= {"batch_id": 3 * number, "batch_clock": clock * 1000}
    write_deltalake(tmp_path, pa.Table.from_pylist(rows, schema=pa.schema([*LEDGER_SCHEMA, *BATCH_FIELDS])))
    return tmp_path


def found(
    window: Window, ledger: Path, starts: tuple[int, int] = (0, 0), most: int | None = None
) -> list[tuple[int, list[tuple[int, int, int]]]]:
    ranges = [OffsetRange("t", number, start, 100) for number, start in enumerate(starts)]
    batches: list[HistoryBatch] = load_batch_history(build_plan(window), ledger, ranges, most)
    return [
        (one.clock, [(r.partition, r.start, r.end) for r in one.ranges if r.end > r.start]) for one in batches
    ]


def test_what_lies_in_one_fixed_window_is_one_batch_at_its_last_moment(ledger: Path) -> None:
    assert found(Fixed(10_000, time="processing"), ledger) == [
        (9_999, [(0, 0, 4), (1, 0, 2)]),
        (15_000, [(0, 4, 6), (1, 2, 6)]),
        (31_000, [(0, 6, 8)]),
    ]


def test_sliding_windows_are_cut_where_one_of_them_begins_or_ends(ledger: Path) -> None:
    clocks = [clock for clock, _ in found(Sliding(7_000, 5_000, time="processing"), ledger)]
    assert clocks == [1_000, 4_000, 9_999, 10_000, 14_999, 15_000, 31_000]
    clocks = [clock for clock, _ in found(Sliding(10_000, 5_000, time="processing"), ledger)]
    assert clocks == [4_000, 9_999, 14_999, 15_000, 31_000]


def test_order_windows_take_every_batch_as_it_was(ledger: Path) -> None:
    assert [clock for clock, _ in found(Tumbling(TimePolicy(5_000)), ledger, most=1)] == list(CLOCKS)


def test_no_batch_is_much_larger_than_asked_for(ledger: Path) -> None:
    assert found(Fixed(10_000, time="processing"), ledger, most=3)[:2] == [
        (9_999, [(0, 0, 2), (1, 0, 1)]),
        (9_999, [(0, 2, 4), (1, 1, 2)]),
    ]


def test_every_batch_says_where_it_stands_in_every_partition(ledger: Path) -> None:
    ranges = [OffsetRange("t", number, 0, 100) for number in range(3)]
    batches = load_batch_history(build_plan(Tumbling(TimePolicy(5_000))), ledger, ranges, None)
    assert {tuple(span.partition for span in one.ranges) for one in batches} == {(0, 1, 2)}
    for before, after in pairwise(batches):
        assert [span.end for span in before.ranges] == [span.start for span in after.ranges]


def test_only_what_is_asked_for_is_there_and_what_nobody_recorded_is_refused(
    ledger: Path, tmp_path: Path
) -> None:
    window = Fixed(10_000, time="processing")
    assert found(window, ledger, starts=(7, 5)) == [(15_000, [(1, 5, 6)]), (31_000, [(0, 7, 8)])]
    assert found(window, ledger, starts=(8, 6)) == []
    assert found(window, tmp_path / "none") == []
    rows = pa.Table.from_pylist(
        [{"topic": "t", "partition": 0, "start": 3, "end": 5, "batch_id": 0, "batch_clock": 0}],
        schema=pa.schema([*LEDGER_SCHEMA, *BATCH_FIELDS]),
    )
    write_deltalake(tmp_path / "later", rows)
    with pytest.raises(ReplayError, match="--from offset:0=3"):
        found(window, tmp_path / "later")
