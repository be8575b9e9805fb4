"""The page `which_rows_count.md`: its queries give the results, and every table has its texts."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import (
    COUNT_WINDOW_STAGE,
    PLAN,
    plan_of_stage,
    run_batches,
)

from penstock.engine.plan.stages import Plan
from penstock.engine.sinks.complete_result import CompleteTableSink
from penstock.engine.sinks.final_panes import FinalPanes
from penstock.engine.storage.file_access import list_warehouse_tables
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.table_comments import PANE_COMMENTS, RECORD_TABLE_COMMENTS, TABLE_DESCRIPTIONS
from penstock.engine.tables.table_documentation import TableDocumentation, document_table
from penstock.engine.tables.table_owner import TableClaim, TableOwner
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.window import Window
from penstock.stream import after_watermark, every

PAGE = (Path(__file__).parents[4] / "pipelines/docs/which_rows_count.md").read_text("utf-8")
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
CURRENT_ROWS, SUM_OF_CHANGES, SUM_OF_PARTS, UNBALANCED_BATCHES = QUERIES
WINDOWS = [Fixed(10), Sessions(8)]


def make_plan(window: Window, accumulation: str) -> Plan:
    trigger = after_watermark(early=every(4))
    stage = replace(
        COUNT_WINDOW_STAGE, window=window, trigger=trigger, lateness=20, accumulation=accumulation
    )
    return plan_of_stage(stage)


def run_stream(folder: Path, window: Window, accumulation: str) -> duckdb.DuckDBPyConnection:
    """Run a stream, and return its tables with the names and columns of the page."""
    bench = Bench(make_plan(window, accumulation), folder / accumulation)
    run_batches(bench)
    connection = duckdb.connect()
    for name, path in {
        "sensor_minute": "latest/stream",
        "sensor_minute_log": "panes/stream",
        "sensor_minute_parts_log": "panes/stream",
        "sensor_minute_ledger": "ledger/stream",
    }.items():
        rows = pa.table(DeltaTable(bench.warehouse / path).to_pyarrow_table())
        renamed = {"key": "device", "n": "readings", "most": "temperature"}
        connection.register(
            name, rows.rename_columns([renamed.get(each, each) for each in rows.column_names])
        )
    return connection


@pytest.mark.parametrize("accumulation", ["retracting", "accumulating"])
@pytest.mark.parametrize("window", WINDOWS, ids=["fixed", "sessions"])
def test_the_last_inserts_of_a_log_are_the_rows_of_latest(
    tmp_path: Path, window: Window, accumulation: str
) -> None:
    tables = run_stream(tmp_path, window, accumulation)
    answer = tables.sql(CURRENT_ROWS).fetchall()
    expected = tables.sql("SELECT device, window_start, temperature, readings FROM sensor_minute").fetchall()
    assert sorted(answer, key=repr) == sorted(expected, key=repr)
    assert len(expected) > 2


@pytest.mark.parametrize("window", WINDOWS, ids=["fixed", "sessions"])
def test_inserts_minus_retractions_are_the_sum_over_latest(tmp_path: Path, window: Window) -> None:
    tables = run_stream(tmp_path, window, "retracting")
    readings_by_device: dict[str, int] = {}
    for device, readings in tables.sql("SELECT device, readings FROM sensor_minute").fetchall():
        readings_by_device[device] = readings_by_device.get(device, 0) + readings
    assert dict(tables.sql(SUM_OF_CHANGES).fetchall()) == readings_by_device
    all_rows = tables.sql("SELECT device, sum(readings) FROM sensor_minute_log GROUP BY device").fetchall()
    assert dict(all_rows) != readings_by_device, "the log has several panes for a window"


def test_discarded_parts_add_up_to_the_accumulated_result(tmp_path: Path) -> None:
    parts, whole = (run_stream(tmp_path, WINDOWS[0], each) for each in ("discarding", "accumulating"))
    expected = whole.sql("SELECT device, sum(readings) FROM sensor_minute GROUP BY device").fetchall()
    assert sorted(parts.sql(SUM_OF_PARTS).fetchall()) == sorted(expected)


def test_the_ledger_has_no_batch_that_does_not_add_up(tmp_path: Path) -> None:
    tables = run_stream(tmp_path, WINDOWS[0], "retracting")
    assert tables.sql(UNBALANCED_BATCHES).fetchall() == []
    tables.sql("CREATE TABLE wrong AS SELECT * REPLACE (read + 1 AS read) FROM sensor_minute_ledger")
    assert tables.sql(UNBALANCED_BATCHES.replace("sensor_minute_ledger", "wrong")).fetchall()


def iter_comments() -> Iterator[tuple[str, str]]:
    yield from PANE_COMMENTS.items()
    for comments in RECORD_TABLE_COMMENTS.values():
        yield from comments.items()


def test_the_page_has_the_text_of_every_table_and_column() -> None:
    missing = [folder for folder, text in TABLE_DESCRIPTIONS.items() if f"| {text} |" not in PAGE]
    missing += [name for name, text in iter_comments() if f"| `{name}` | {text} |" not in PAGE]
    assert missing == []


def test_every_column_of_every_table_has_a_comment(tmp_path: Path) -> None:
    stage = PLAN.only_stage
    sinks = (*stage.sinks, FinalPanes("stream"), CompleteTableSink("stream"))
    bench = Bench(replace(PLAN, stages=(replace(stage, sinks=sinks),)), tmp_path)
    bench.open()
    folders = set()
    for path in list_warehouse_tables(bench.warehouse):
        table, folder = DeltaTable(bench.warehouse / path), path.partition("/")[0]
        folders.add(folder)
        assert table.metadata().description == TABLE_DESCRIPTIONS[folder]
        assert [field.name for field in table.schema().fields if not field.metadata.get("comment")] == []
    assert folders == {"latest", "panes", "final", "complete", "late", "quarantine", "ledger"}
    comments = {
        f.name: f.metadata["comment"]
        for f in DeltaTable(tmp_path / "warehouse/latest/stream").schema().fields
    }
    assert (comments["key"], comments["n"], comments["total"]) == ("part of the key", "count()", "sum(value)")


SCHEMA = pa.schema([pa.field("n", pa.int64()), pa.field("batch_id", pa.int64())])
CLAIM = TableClaim(TableOwner("stream", "id-1"))


def commit(table: LogTable, batch: int) -> None:
    rows = pa.Table.from_pylist([{"n": batch, "batch_id": batch}], schema=SCHEMA)
    assert table.commit(batch, table.write(rows, batch, batch), batch)


def test_a_table_of_0_1_0_gets_its_texts_once_when_its_owner_claims_it(tmp_path: Path) -> None:
    commit(LogTable(tmp_path / "t", SCHEMA, "stream"), 0)
    commits = []
    for batch in (1, 2):
        before = DeltaTable(tmp_path / "t")
        table = LogTable(tmp_path / "t", SCHEMA, "stream", document_table("panes"))
        table.claim(TableClaim(CLAIM.owner, batch - 1))
        commit(table, batch)
        after = DeltaTable(tmp_path / "t")
        commits.append(after.version() - before.version())
        assert set(before.file_uris()) < set(after.file_uris())
    assert commits == [4, 1], "the owner, the description, one comment and the batch; then only the batch"
    assert after.metadata().description == TABLE_DESCRIPTIONS["panes"]
    assert after.schema().fields[1].metadata == {"comment": PANE_COMMENTS["batch_id"]}
    assert sorted(after.to_pyarrow_table().column("n").to_pylist()) == [0, 1, 2]


def test_a_table_without_a_claim_keeps_its_texts(tmp_path: Path) -> None:
    LogTable(tmp_path / "t", SCHEMA, "stream")
    commit(LogTable(tmp_path / "t", SCHEMA, "stream", TableDocumentation("other", {})), 0)
    assert DeltaTable(tmp_path / "t").metadata().description is None
