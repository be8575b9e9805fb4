"""A stream continues after its warehouse is copied into an object store."""

from pathlib import Path

from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, make_batches, run_batches

from penstock.conformance.reference.input_records import InputBatch
from penstock.engine.storage import ObjectStorePath
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths


def feed_batches(bench: Bench, batches: list[InputBatch]) -> None:
    """Run some batches of the history, as a host does."""
    engine = bench.open()
    numbers = {batch.id: number for number, batch in enumerate(b for b in make_batches() if b.records)}
    for batch in batches:
        bench.feed(engine, InputBatch(numbers.get(batch.id, 0), batch.clock, batch.records))


def test_a_stream_continues_in_a_moved_warehouse(tmp_path: Path, bucket: ObjectStorePath) -> None:
    plan = PLANS["two stages"]
    unmoved, moved = Bench(plan, tmp_path / "undisturbed"), Bench(plan, tmp_path / "moved")
    run_batches(unmoved)
    feed_batches(moved, make_batches()[:3])
    folder = tmp_path / "moved" / "warehouse"
    for file in folder.rglob("*"):
        if file.is_file():
            (bucket / file.relative_to(folder)).write_bytes(file.read_bytes())
    moved.table_root = bucket
    feed_batches(moved, make_batches()[3:])
    for table in [*list_owned_paths(plan), *list_quarantine_paths(plan)]:
        assert moved.rows(table) == unmoved.rows(table), table
