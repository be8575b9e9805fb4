"""Which recorded batches share a job when they are re-executed."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import cast

from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, Fuse, history, run

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.history import reexecute
from penstock.engine.history.reexecute import (
    BatchToReexecute,
    InMemoryPanes,
    group_batches_by_job,
    merge_ranges,
)
from penstock.engine.spark.multi_batch_input import BatchRanges


def batch(start: int, end: int, lookups: dict[str, int] | None = None) -> BatchToReexecute:
    return BatchToReexecute(start, (OffsetRange("t", 0, start, end),), table_versions=lookups or {})


def numbers(batches: list[BatchToReexecute]) -> list[list[int]]:
    return [[number for number, _ in some] for some in group_batches_by_job(batches)]


def test_batches_share_a_job_up_to_as_many_records_as_it_may_hold() -> None:
    many = reexecute.MAX_RECORDS_PER_JOB
    assert numbers([batch(0, many // 2), batch(many // 2, many), batch(many, many + 1)]) == [[0, 1], [2]]
    assert numbers([batch(0, 3 * many), batch(3 * many, 3 * many + 1)]) == [[0], [1]]
    assert numbers([]) == []


def test_ticks_share_the_job_of_their_neighbours() -> None:
    assert numbers(
        [BatchToReexecute(1), batch(0, 5, {"a": 1}), BatchToReexecute(2), batch(5, 6, {"a": 1})]
    ) == [[0, 1, 2, 3]]


def test_batches_with_different_lookup_versions_do_not_share_a_job() -> None:
    assert numbers([batch(0, 5, {"a": 1}), BatchToReexecute(2), batch(5, 6, {"a": 2})]) == [[0, 1], [2]]


def test_a_job_reads_from_the_first_offset_of_its_batches_to_the_last() -> None:
    spans = [
        BatchRanges(0, 1, (OffsetRange("t", 0, 4, 7), OffsetRange("t", 1, 0, 0))),
        BatchRanges(1, 2, (OffsetRange("t", 0, 7, 9),)),
    ]
    assert merge_ranges(spans) == (OffsetRange("t", 0, 4, 9), OffsetRange("t", 1, 0, 0))


def test_panes_in_memory_are_those_of_the_tables_of_each_output(tmp_path: Path) -> None:
    plan = PLANS["several outputs"]
    written, in_memory = Bench(plan, tmp_path / "written"), Bench(plan, tmp_path / "memory")
    panes = InMemoryPanes(in_memory.ready())
    run(written, Fuse(-1))
    engine = in_memory.open(tables=lambda *_: cast("StreamTables", panes))
    data_batches = count()
    for each in history():
        in_memory.feed(engine, replace(each, id=next(data_batches) if each.records else each.id))
    for table, output in (("panes/stream", None), ("panes/aside", "aside")):
        rows = panes.panes_of("stream", output).to_pylist()
        assert sorted(rows, key=repr) == written.rows(table)
        assert rows
