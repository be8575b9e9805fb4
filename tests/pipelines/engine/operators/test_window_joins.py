"""Window joins return the rows of an SQL join, nulls included, and never emit an unchanged row again."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from tests.examples import scale_examples
from tests.pipelines.engine.operators.graph_evaluation import (
    CLICKS,
    VIEWS,
    run_engine,
    run_reference,
    split_inputs,
)
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.test_graphs_against_reference import make_join
from tests.pipelines.engine.operators.test_windows_against_reference import FIELDS

from penstock.conformance.reference import InputBatch, InputRecord
from penstock.engine.plan.joins import JOIN_KINDS
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.windows.fixed import Fixed

TOPICS = ("clicks", "views")
CONDITION = 'a.key = b.key AND a."at" // 10 = b."at" // 10'


def make_plan(kind: str, key: tuple[str, ...] = ("key",), **options: Any) -> Plan:
    """Clicks joined with views in windows of ten."""
    join, aggregates = make_join(kind, *TOPICS)
    stage = Stage(
        "rows", TOPICS, Fixed(10), aggregates, key=key, join=join, sinks=(PaneLog("rows"),), **options
    )
    return validate_plan(Plan("rows", (CLICKS, VIEWS), (stage,)))


def build_query(kind: str) -> str:
    """The same join as a query for DuckDB."""
    if kind in ("semi", "anti"):
        return f"SELECT a.key, a.value, a.word FROM a {kind.upper()} JOIN b ON {CONDITION}"
    return (
        f"SELECT coalesce(a.key, b.key), a.value, a.word, b.value FROM a {kind.upper()} JOIN b ON {CONDITION}"
    )


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories())
def test_rows_of_a_window_equal_those_of_sql(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch]
) -> None:
    records = tuple(record for batch in split_inputs(batches) for record in batch.records)
    connection = duckdb.connect(config={"threads": 1})
    for name, source in (("a", "clicks"), ("b", "views")):
        rows = [dict(record.fields) for record in records if record.source == source]
        connection.register(name, pa.Table.from_pylist(rows, schema=FIELDS))
    for kind in JOIN_KINDS:
        (batch_rows,) = run_engine(
            make_plan(kind), [InputBatch(0, 0, records, is_last=True)], tmp_path_factory.mktemp("state")
        )
        width = 3 if kind in ("semi", "anti") else 4
        expected = connection.sql(build_query(kind)).fetchall()
        assert sorted((row[:width] for row in batch_rows["rows"]), key=repr) == sorted(expected, key=repr)


def make_record(source: str, offset: int, value: int) -> InputRecord:
    """A record of one key, in one window."""
    return InputRecord(source, 0, offset, {"key": "a", "at": offset, "value": value, "word": None})


def test_a_semi_join_emits_nothing_for_further_partners(tmp_path: Path) -> None:
    plan = make_plan("semi", trigger=Repeatedly(AfterCount(1)), accumulation="retracting")
    batches = [
        InputBatch(0, 0, (make_record("clicks", 1, 7), make_record("views", 2, 0)), watermark=0),
        InputBatch(1, 1, (make_record("views", 3, 1),), watermark=0),
        InputBatch(2, 2, (make_record("clicks", 4, 8),), watermark=0),
    ]
    rows_by_batch = run_engine(plan, batches, tmp_path)
    assert rows_by_batch == run_reference(plan, batches)
    assert [[(row[1], row[9]) for row in batch_rows["rows"]] for batch_rows in rows_by_batch] == [
        [(7, "insert")],
        [],
        [(8, "insert")],
    ]


def test_early_and_late_panes_show_changed_rows_and_on_time_panes_all(
    tmp_path: Path,
) -> None:
    trigger = AfterWatermark(early=AfterCount(1), late=AfterCount(1))
    plan = make_plan("left", trigger=trigger, accumulation="retracting", lateness=20)
    clicks = [make_record("clicks", number, number) for number in range(4)]
    batches = [
        InputBatch(0, 0, tuple(clicks[:3]), watermark=0),
        InputBatch(1, 1, (clicks[3],), watermark=0),
        InputBatch(2, 2, (make_record("views", 4, 7),), watermark=0),
        InputBatch(3, 3, (make_record("views", 5, 8),), watermark=10),
        InputBatch(4, 4, (make_record("views", 6, 9),), watermark=12),
    ]
    rows_by_batch = run_engine(plan, batches, tmp_path)
    assert rows_by_batch == run_reference(plan, batches)
    rows = [{(row[1], row[3], row[10]) for row in batch_rows["rows"]} for batch_rows in rows_by_batch]
    assert rows == [
        {(n, None, "insert") for n in range(3)},
        {(3, None, "insert")},
        {(n, None, "retract") for n in range(4)} | {(n, 7, "insert") for n in range(4)},
        {(n, 7, "retract") for n in range(4)} | {(n, value, "insert") for n in range(4) for value in (7, 8)},
        {(n, 9, "insert") for n in range(4)},
    ]


def test_a_partner_with_nulls_does_not_change_an_unmatched_row(tmp_path: Path) -> None:
    plan = make_plan("left", trigger=Repeatedly(AfterCount(1)), accumulation="retracting")
    null_record = InputRecord("views", 0, 2, {"key": "a", "at": 2, "value": None, "word": None})
    batches = [
        InputBatch(0, 0, (make_record("clicks", 1, 7),), watermark=0),
        InputBatch(1, 1, (null_record,), watermark=0),
    ]
    rows_by_batch = run_engine(plan, batches, tmp_path)
    assert rows_by_batch == run_reference(plan, batches)
    assert [[row[1:4] for row in batch_rows["rows"]] for batch_rows in rows_by_batch] == [
        [(7, None, None)],
        [],
    ]
