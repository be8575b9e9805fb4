"""What each kind of table takes of a stream's panes."""

from dataclasses import asdict, replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import IN_ORDER, PLAN, Fuse, history, plan_over, run

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
        IN_ORDER,
        window=window,
        trigger=after_watermark(early=every(4)),
        lateness=4,
        accumulation="retracting",
        final_pane="always",
        sinks=(PaneLog("stream"), LatestValues("stream"), FinalPanes("stream")),
    )
    done = Bench(plan_over(stage), tmp_path)
    run(done, Fuse(-1))
    return done


def test_the_final_table_has_each_last_pane_and_no_retraction(bench: Bench) -> None:
    log = [row for row in bench.rows("panes/stream") if row["final"] and row["kind"] == "insert"]
    assert len(log) > 2
    assert bench.rows("final/stream") == log


def test_the_latest_value_is_what_inserts_less_retractions_leave(bench: Bench) -> None:
    standing: dict[tuple[object, ...], tuple[object, ...]] = {}
    for row in sorted(bench.rows("panes/stream"), key=lambda row: (row["batch_id"], row["kind"] == "insert")):
        window = (row["key"], row["window_start"], row["window_end"])
        if row["kind"] == "insert":
            standing[window] = (row["n"], row["total"], row["most"])
        else:
            assert standing.pop(window) == (row["n"], row["total"], row["most"])
    latest = {
        (row["key"], row["window_start"], row["window_end"]): (row["n"], row["total"], row["most"])
        for row in bench.rows("latest/stream")
    }
    assert latest == standing


@pytest.mark.parametrize("complete", [False, True], ids=["newest values", "complete"])
def test_a_batch_reports_its_rows_by_table(tmp_path: Path, complete: bool) -> None:
    newest = CompleteTableSink("stream") if complete else LatestValues("stream")
    sinks = (PaneLog("stream"), newest, FinalPanes("stream"))
    bench = Bench(plan_over(replace(PLAN.only_stage, final_pane="always", sinks=sinks)), tmp_path)
    told: list[BatchOutcome] = []
    engine = bench.open(1, told=told.append)
    for number, batch in enumerate(history()):
        bench.feed(engine, replace(batch, id=number))
    panes = [(row["batch_id"], row["kind"], row["final"]) for row in bench.rows("panes/stream")]
    latest = newest.path
    for outcome in told:
        given = to_batch_record("stream", outcome).result_rows
        ours = [(kind, final) for batch, kind, final in panes if batch == outcome.batch_id]
        inserts = [final for kind, final in ours if kind == "insert"]
        assert given.get("panes/stream", 0) == len(ours)
        assert given.get(latest, 0) == len(inserts)
        assert given.get("final/stream", 0) == sum(inserts)
        for change in outcome.changes.values():
            assert parse_table_change(asdict(change)).result_rows == change.result_rows
    assert len({batch for batch, *_ in panes}) == 3


def test_a_topic_is_given_panes_and_no_watermark_counts_as_one(tmp_path: Path) -> None:
    topic = PublishedTopic("t", PLAN.only_stage.key, tmp_path / "published", "stream", {})
    rows = pa.table({"key": ["a", "b", None], "kind": ["insert", "retract", "watermark"]})
    assert topic.write(rows, 0, 0).result_rows == 2


def test_the_quarantine_of_a_topic_names_the_stream_and_the_contract(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    run(bench, Fuse(-1))
    (row,) = bench.rows("quarantine/records")
    assert (row["stream"], row["contract"]) == ("stream", contract_version(PLAN.sources[0]))


def test_a_table_of_an_older_version_gets_the_columns_that_it_lacks(tmp_path: Path) -> None:
    old = pa.table({"offset": pa.array([7], pa.int64())})
    write_deltalake(tmp_path / "table", old)
    schema = pa.schema([pa.field("offset", pa.int64()), pa.field("stream", pa.string())])
    table = LogTable(tmp_path / "table", schema, "stream")
    table.commit(0, table.write(pa.Table.from_pylist([{"offset": 8, "stream": "a"}], schema), 0, 1), 1)
    rows = DeltaTable(tmp_path / "table").to_pyarrow_table().sort_by("offset").to_pylist()
    assert rows == [{"offset": 7, "stream": None}, {"offset": 8, "stream": "a"}]
