"""A table with the complete result."""

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import (
    COUNT_WINDOW_STAGE,
    plan_of_stage,
    run_batches,
)

from penstock.engine.sinks.complete_result import CompleteTableSink
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.window import Window
from penstock.stream import after_watermark, every, fixed


@pytest.fixture(params=[fixed(10), Sessions(8)], ids=["fixed", "sessions"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    window: Window = request.param
    stage = replace(
        COUNT_WINDOW_STAGE,
        window=window,
        trigger=after_watermark(early=every(4)),
        lateness=4,
        accumulation="retracting",
        sinks=(LatestValues("stream"), CompleteTableSink("stream")),
    )
    bench = Bench(plan_of_stage(stage), tmp_path)
    run_batches(bench)
    return bench


def test_the_complete_result_is_in_one_file_at_every_version(bench: Bench) -> None:
    table = DeltaTable(bench.folder / "warehouse" / "complete" / "stream")
    newest_version = table.version()
    assert newest_version > 2
    for version in range(1, newest_version + 1):
        table.load_as_version(version)
        assert len(table.file_uris()) == 1


def test_the_table_has_the_latest_value_of_every_window(bench: Bench) -> None:
    assert bench.rows("complete/stream") == bench.rows("latest/stream")
    assert len(bench.rows("complete/stream")) > 5


def test_a_batch_that_is_committed_again_changes_nothing(bench: Bench) -> None:
    path = bench.folder / "warehouse" / "complete" / "stream"
    version_before = DeltaTable(path).version()
    bench.open(epoch=2)
    assert DeltaTable(path).version() == version_before
