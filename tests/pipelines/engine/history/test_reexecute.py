"""Which recorded batches share a job when they are re-executed."""

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import cast

from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, make_batches, run_batches

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


def make_batch(start: int, end: int, lookups: dict[str, int] | None = None) -> BatchToReexecute:
    return BatchToReexecute(start, (OffsetRange("t", 0, start, end),), table_versions=lookups or {})


def list_job_batches(batches: list[BatchToReexecute]) -> list[list[int]]:
    return [[number for number, _ in job] for job in group_batches_by_job(batches)]


def test_batches_share_a_job_up_to_as_many_records_as_it_may_hold() -> None:
    max_records = reexecute.MAX_RECORDS_PER_JOB
    assert list_job_batches(
        [
            make_batch(0, max_records // 2),
            make_batch(max_records // 2, max_records),
            make_batch(max_records, max_records + 1),
        ]
    ) == [[0, 1], [2]]
    assert list_job_batches(
        [make_batch(0, 3 * max_records), make_batch(3 * max_records, 3 * max_records + 1)]
    ) == [[0], [1]]
    assert list_job_batches([]) == []


def test_ticks_share_the_job_of_their_neighbours() -> None:
    assert list_job_batches(
        [BatchToReexecute(1), make_batch(0, 5, {"a": 1}), BatchToReexecute(2), make_batch(5, 6, {"a": 1})]
    ) == [[0, 1, 2, 3]]


def test_batches_with_different_lookup_versions_do_not_share_a_job() -> None:
    assert list_job_batches(
        [make_batch(0, 5, {"a": 1}), BatchToReexecute(2), make_batch(5, 6, {"a": 2})]
    ) == [[0, 1], [2]]


def test_a_job_reads_from_the_first_offset_of_its_batches_to_the_last() -> None:
    batch_ranges = [
        BatchRanges(0, 1, (OffsetRange("t", 0, 4, 7), OffsetRange("t", 1, 0, 0))),
        BatchRanges(1, 2, (OffsetRange("t", 0, 7, 9),)),
    ]
    assert merge_ranges(batch_ranges) == (OffsetRange("t", 0, 4, 9), OffsetRange("t", 1, 0, 0))


def test_panes_in_memory_are_those_of_the_tables_of_each_output(tmp_path: Path) -> None:
    plan = PLANS["side outputs"]
    stored, in_memory = Bench(plan, tmp_path / "written"), Bench(plan, tmp_path / "memory")
    panes = InMemoryPanes(in_memory.compile_plan())
    run_batches(stored)
    engine = in_memory.open(make_tables=lambda *_: cast("StreamTables", panes))
    data_batches = count()
    for batch in make_batches():
        in_memory.feed(engine, replace(batch, id=next(data_batches) if batch.records else batch.id))
    for table, output in (("panes/stream", None), ("panes/even_counts", "even_counts")):
        rows = panes.panes_of("stream", output).to_pylist()
        assert sorted(rows, key=repr) == stored.rows(table)
        assert rows
