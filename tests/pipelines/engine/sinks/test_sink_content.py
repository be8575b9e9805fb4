"""The rows that each kind of sink takes from the panes of a stream."""

from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import (
    COUNT_WINDOW_STAGE,
    PLAN,
    make_batches,
    plan_of_stage,
    run_batches,
)

from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.host.control_reporter import to_batch_record
from penstock.engine.plan.codec import contract_version
from penstock.engine.sinks.complete_result import CompleteTableSink
from penstock.engine.sinks.final_panes import FinalPanes
from penstock.engine.sinks.latest_values import LatestValues
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.published_topic import PublishedTopic
from penstock.engine.tables.table_change import parse_table_change
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
        final_pane="always",
        sinks=(PaneLog("stream"), LatestValues("stream"), FinalPanes("stream")),
    )
    bench = Bench(plan_of_stage(stage), tmp_path)
    run_batches(bench)
    return bench


def test_a_table_of_final_panes_has_each_final_insert(bench: Bench) -> None:
    log = [row for row in bench.rows("panes/stream") if row["final"] and row["kind"] == "insert"]
    assert len(log) > 2
    assert bench.rows("final/stream") == log


def test_latest_values_are_the_inserts_without_the_retracted(bench: Bench) -> None:
    latest_by_window: dict[tuple[object, ...], tuple[object, ...]] = {}
    for row in sorted(bench.rows("panes/stream"), key=lambda row: (row["batch_id"], row["kind"] == "insert")):
        window = (row["key"], row["window_start"], row["window_end"])
        if row["kind"] == "insert":
            latest_by_window[window] = (row["n"], row["total"], row["most"])
        else:
            assert latest_by_window.pop(window) == (row["n"], row["total"], row["most"])
    latest = {
        (row["key"], row["window_start"], row["window_end"]): (row["n"], row["total"], row["most"])
        for row in bench.rows("latest/stream")
    }
    assert latest == latest_by_window


@pytest.mark.parametrize("complete", [False, True], ids=["latest values", "complete"])
def test_a_batch_reports_its_rows_per_table(tmp_path: Path, complete: bool) -> None:
    latest_sink = CompleteTableSink("stream") if complete else LatestValues("stream")
    sinks = (PaneLog("stream"), latest_sink, FinalPanes("stream"))
    bench = Bench(plan_of_stage(replace(PLAN.only_stage, final_pane="always", sinks=sinks)), tmp_path)
    outcomes: list[BatchOutcome] = []
    engine = bench.open(1, report_outcome=outcomes.append)
    for number, batch in enumerate(make_batches()):
        bench.feed(engine, replace(batch, id=number))
    panes = [(row["batch_id"], row["kind"], row["final"]) for row in bench.rows("panes/stream")]
    latest = latest_sink.path
    for outcome in outcomes:
        reported = to_batch_record("stream", outcome).result_rows
        batch_panes = [(kind, final) for batch, kind, final in panes if batch == outcome.batch_id]
        inserts = [final for kind, final in batch_panes if kind == "insert"]
        assert reported.get("panes/stream", 0) == len(batch_panes)
        assert reported.get(latest, 0) == len(inserts)
        assert reported.get("final/stream", 0) == sum(inserts)
        for change in outcome.changes.values():
            assert parse_table_change(asdict(change)).result_rows == change.result_rows
    assert len({batch for batch, *_ in panes}) == 3


def test_watermark_messages_are_not_counted_as_panes(tmp_path: Path) -> None:
    topic = PublishedTopic("t", PLAN.only_stage.key, tmp_path / "published", "stream", {})
    rows = pa.table({"key": ["a", "b", None], "kind": ["insert", "retract", "watermark"]})
    assert topic.write(rows, 0, 0).result_rows == 2


def test_quarantined_rows_name_the_stream_and_the_contract(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    run_batches(bench)
    (row,) = bench.rows("quarantine/records")
    assert (row["stream"], row["contract"]) == ("stream", contract_version(PLAN.sources[0]))


def test_a_table_of_an_older_version_gets_its_missing_columns(tmp_path: Path) -> None:
    old = pa.table({"offset": pa.array([7], pa.int64())})
    write_deltalake(tmp_path / "table", old)
    schema = pa.schema([pa.field("offset", pa.int64()), pa.field("stream", pa.string())])
    table = LogTable(tmp_path / "table", schema, "stream")
    table.commit(0, table.write(pa.Table.from_pylist([{"offset": 8, "stream": "a"}], schema), 0, 1), 1)
    rows = DeltaTable(tmp_path / "table").to_pyarrow_table().sort_by("offset").to_pylist()
    assert rows == [{"offset": 7, "stream": None}, {"offset": 8, "stream": "a"}]
