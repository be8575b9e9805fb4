"""Joins in windows put together what SQL puts together, whatever is null, and never say again what stands."""

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from tests.examples import examples
from tests.pipelines.fold.graphs import CLICKS, VIEWS, engine, of_two, reference
from tests.pipelines.fold.strategies import histories
from tests.pipelines.fold.test_graphs_against_reference import joining
from tests.pipelines.fold.test_windows_against_reference import FIELDS

from penstock.pipelines.plan import AfterCount, Fixed, PaneLog, Plan, Repeatedly, Stage, check
from penstock.pipelines.plan.joins import KINDS
from penstock.pipelines.reference import Batch, Record

BOTH = ("clicks", "views")
ON = 'a.key = b.key AND a."at" // 10 = b."at" // 10'


def plan_of(kind: str, key: tuple[str, ...] = ("key",), **others: Any) -> Plan:
    """Clicks joined with views in windows of ten."""
    join, of = joining(kind, *BOTH)
    stage = Stage("rows", BOTH, Fixed(10), of, key=key, join=join, sinks=(PaneLog("rows"),), **others)
    return check(Plan("rows", (CLICKS, VIEWS), (stage,)))


def query(kind: str) -> str:
    """The same for DuckDB."""
    if kind in ("semi", "anti"):
        return f"SELECT a.key, a.value, a.word FROM a {kind.upper()} JOIN b ON {ON}"
    return f"SELECT coalesce(a.key, b.key), a.value, a.word, b.value FROM a {kind.upper()} JOIN b ON {ON}"


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories())
def test_rows_of_a_window_are_those_of_sql(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Batch]
) -> None:
    records = tuple(record for batch in of_two(batches) for record in batch.records)
    connection = duckdb.connect(config={"threads": 1})
    for name, source in (("a", "clicks"), ("b", "views")):
        rows = [dict(record.fields) for record in records if record.source == source]
        connection.register(name, pa.Table.from_pylist(rows, schema=FIELDS))
    for kind in KINDS:
        (answer,) = engine(plan_of(kind), [Batch(0, 0, records, ends=True)], tmp_path_factory.mktemp("state"))
        width = 3 if kind in ("semi", "anti") else 4
        expected = connection.sql(query(kind)).fetchall()
        assert sorted((row[:width] for row in answer["rows"]), key=repr) == sorted(expected, key=repr)


def record(source: str, offset: int, value: int) -> Record:
    """A record of one key, in one window."""
    return Record(source, 0, offset, {"key": "a", "at": offset, "value": value, "word": None})


def test_a_semi_join_says_nothing_when_more_partners_come(tmp_path: Path) -> None:
    plan = plan_of("semi", trigger=Repeatedly(AfterCount(1)), accumulation="retracting")
    batches = [
        Batch(0, 0, (record("clicks", 1, 7), record("views", 2, 0)), watermark=0),
        Batch(1, 1, (record("views", 3, 1),), watermark=0),
        Batch(2, 2, (record("clicks", 4, 8),), watermark=0),
    ]
    told = engine(plan, batches, tmp_path)
    assert told == reference(plan, batches)
    assert [[(row[1], row[9]) for row in one["rows"]] for one in told] == [
        [(7, "insert")],
        [],
        [(7, "insert"), (7, "retract"), (8, "insert")],
    ]
