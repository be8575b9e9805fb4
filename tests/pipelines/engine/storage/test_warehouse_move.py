"""A warehouse that is copied from a folder into an object store goes on there as if it had always been there."""

from pathlib import Path

from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, Fuse, history, run

from penstock.conformance.reference.input_records import InputBatch
from penstock.engine.storage import ObjectStorePath
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths


def feed(bench: Bench, batches: list[InputBatch]) -> None:
    """Run some of the batches of a history, as a host would."""
    engine = bench.open()
    numbers = {batch.id: spark for spark, batch in enumerate(b for b in history() if b.records)}
    for batch in batches:
        bench.feed(engine, InputBatch(numbers.get(batch.id, 0), batch.clock, batch.records))


def test_a_stream_goes_on_where_its_tables_were_moved_to(tmp_path: Path, bucket: ObjectStorePath) -> None:
    plan = PLANS["two stages"]
    calm, moved = Bench(plan, tmp_path / "calm"), Bench(plan, tmp_path / "moved")
    run(calm, Fuse(-1))
    feed(moved, history()[:3])
    folder = tmp_path / "moved" / "warehouse"
    for file in folder.rglob("*"):
        if file.is_file():
            (bucket / file.relative_to(folder)).write_bytes(file.read_bytes())
    moved.elsewhere = bucket
    feed(moved, history()[3:])
    for table in [*list_owned_paths(plan), *list_quarantine_paths(plan)]:
        assert moved.rows(table) == calm.rows(table), table
