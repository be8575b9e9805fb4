"""Joins without windows equal the reference in each batch, and DuckDB in the end."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.graph_evaluation import (
    CLICKS,
    VIEWS,
    engine,
    graph_of,
    input_for,
    reference,
    split_inputs,
)
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.test_graphs_against_reference import BOTH, joining, own_steps
from tests.pipelines.engine.operators.test_windows_against_reference import FIELDS

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.engine.batch_time import BatchTime
from penstock.engine.definition.predicates import Comparison
from penstock.engine.operators.dispatch import process_batch
from penstock.engine.plan.joins import JOIN_KINDS
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.state import state_tree as trees
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.engine.windows.as_of import AsOf
from penstock.engine.windows.between import Between
from penstock.engine.windows.join_window import JoinWindow

spans = st.integers(0, 9)
GONE = Comparison("value", "<", 1)
ONE_SIDED = ("inner", "left", "semi", "anti")


def plan_of(window: JoinWindow, kind: str, sides: tuple[str, str], lateness: int, **others: Any) -> Plan:
    join, of = joining(kind, *sides)
    stage = Stage(
        "pairs", sides, window, of, key=("key",), lateness=lateness, join=join, sinks=(PaneLog("pairs"),), **others
    )  # fmt: skip
    return validate_plan(Plan("pairs", (CLICKS, VIEWS), (stage,)))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any interval join or as-of join."""
    sides, lateness = tuple(draw(st.permutations(BOTH))), draw(st.integers(0, 5))
    near = draw(st.booleans())
    ends = draw(st.sampled_from([None, None, GONE]))
    window = Between(draw(spans), draw(spans)) if near else AsOf(draw(st.none() | st.integers(1, 9)), ends)
    kind = draw(st.sampled_from(JOIN_KINDS if near else ONE_SIDED))
    return plan_of(window, kind, (sides[0], sides[1]), lateness, input_steps=draw(own_steps))


@settings(max_examples=scale_examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans(), batches=histories())
def test_every_pair_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    two = split_inputs(batches)
    assert engine(plan, two, tmp_path_factory.mktemp("state")) == reference(plan, two)


def versions_held(
    plan: Plan, steps: Sequence[tuple[int, int | None, int | None]], folder: Path
) -> list[list[int]]:
    """The times of a key's stored versions after each batch, given its watermark and optionally a record."""
    graph, tree = graph_of(plan), trees.create_empty_tree(graph_of(plan).first_record_stage.state_schema)
    before, held = MIN_TIMESTAMP_MS, []
    for number, (watermark, at, value) in enumerate(steps):
        fields = {"key": "a", "at": at, "value": value, "word": "x"}
        records = () if at is None else (InputRecord("views", 0, number, fields),)
        moment = BatchTime(number, number - 1, number, before, watermark)
        outcome = process_batch(
            graph.first_record_stage,
            tree,
            input_for(graph.first_record_stage, InputBatch(number, number, records)),
            moment,
        )
        tree = tree.with_run(outcome.changed_state, folder / f"run-{number}.arrow")
        groups = trees.distinct_groups(
            [run.groups.hi for run in tree.runs], [run.groups.lo for run in tree.runs]
        )
        held.append(sorted(tree.look_up_groups(groups)[0].column("time").to_pylist()))
        before = watermark
    return held


def test_versions_that_are_too_old_to_match_are_dropped(tmp_path: Path) -> None:
    plan = plan_of(AsOf(4), "left", ("clicks", "views"), 2)
    steps = [(0, 1, 1), (0, 3, 1), (8, None, None), (10, None, None), (11, 20, 1)]
    held = versions_held(plan, steps, tmp_path)
    # A version of 1 matches a click until 5, which is in time until the watermark is at 8; one of 3 until 10.
    assert held == [[1], [1, 3], [3], [], [20]]


def told_late(plan: Plan, batches: list[InputBatch]) -> set[tuple[str, int, int]]:
    evaluator = Evaluator(plan)
    return {row.address for outcome in map(evaluator.run, batches) for row in outcome.late}


def in_time(records: list[InputRecord], late: set[tuple[str, int, int]], source: str) -> pa.Table:
    """The records of an input that were not late, in order of arrival."""
    rows = [
        {**record.fields, "came": number}
        for number, record in enumerate(records)
        if record.source == source and record.address not in late
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([*FIELDS, pa.field("came", pa.int64())]))


NEAR = 'ON a.key = b.key AND b."at" BETWEEN a."at" - {before} AND a."at" + {after}'
NEWEST = """
(SELECT * FROM b QUALIFY row_number() OVER (PARTITION BY key, "at" ORDER BY came DESC) = 1) b
ON a.key = b.key AND a."at" >= b."at"
"""


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories(), before=spans, after=spans, kind=st.sampled_from(["inner", "left", "full"]))
def test_interval_joins_of_records_in_time_equal_duckdb(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch], before: int, after: int, kind: str
) -> None:
    plan = plan_of(Between(before, after), kind, ("clicks", "views"), 2)
    two = ended(split_inputs(batches))
    on = NEAR.format(before=before, after=after)
    query = f"SELECT coalesce(a.key, b.key), a.value, a.word, b.value FROM a {kind.upper()} JOIN b {on}"
    assert found(plan, two, tmp_path_factory) == asked(plan, two, query)


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories(), kind=st.sampled_from(["", "LEFT"]))
def test_as_of_joins_of_records_in_time_equal_duckdb(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch], kind: str
) -> None:
    plan = plan_of(AsOf(), "left" if kind else "inner", ("clicks", "views"), 2)
    two = ended([replace(each, records=in_one_partition(each)) for each in split_inputs(batches)])
    query = f"SELECT a.key, a.value, a.word, b.value FROM a ASOF {kind} JOIN {NEWEST}"
    assert found(plan, two, tmp_path_factory) == asked(plan, two, query)


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories(), kind=st.sampled_from(["inner", "left", "anti"]))
def test_a_deleted_key_has_no_partner_from_its_deletion_on(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch], kind: str
) -> None:
    plan = plan_of(AsOf(ends=GONE), kind, ("clicks", "views"), 2)
    two = ended([replace(each, records=in_one_partition(each)) for each in split_inputs(batches)])
    there = "b.key IS NOT NULL AND coalesce(b.value >= 1, true)"
    columns = f"a.*, {there} AS there, CASE WHEN {there} THEN b.value END AS other"
    rows = f"SELECT {columns} FROM a ASOF LEFT JOIN {NEWEST}"
    shown, chosen = {"inner": (", other", "there"), "left": (", other", "true"), "anti": ("", "NOT there")}[
        kind
    ]
    query = f"SELECT key, value, word{shown} FROM ({rows}) WHERE {chosen}"
    width = 3 if kind == "anti" else 4
    assert [row[:width] for row in found(plan, two, tmp_path_factory)] == asked(plan, two, query)


def test_a_deleted_key_leaves_no_state(tmp_path: Path) -> None:
    plan = plan_of(AsOf(ends=GONE), "left", ("clicks", "views"), 2)
    held = versions_held(plan, [(0, 1, 5), (2, 2, 0), (4, None, None), (6, None, None)], tmp_path)
    assert held == [[1], [1, 2], [], []]


def in_one_partition(batch: InputBatch) -> tuple[InputRecord, ...]:
    """The records with offsets in one partition, in order of arrival, batch after batch."""
    first = 100 * batch.id
    return tuple(replace(r, partition=0, offset=first + number) for number, r in enumerate(batch.records))


def ended(batches: list[InputBatch]) -> list[InputBatch]:
    return [
        *(replace(b, is_last=False) for b in batches),
        InputBatch(len(batches), batches[-1].clock + 1, is_last=True),
    ]


def found(plan: Plan, batches: list[InputBatch], folders: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    rows = [row[:4] for answer in engine(plan, batches, folders.mktemp("state")) for row in answer["pairs"]]
    return sorted(rows, key=repr)


def asked(plan: Plan, batches: list[InputBatch], query: str) -> list[tuple[Any, ...]]:
    late = told_late(plan, batches)
    records = [record for batch in batches for record in batch.records]
    connection = duckdb.connect(config={"threads": 1})
    connection.register("a", in_time(records, late, "clicks"))
    connection.register("b", in_time(records, late, "views"))
    return sorted(connection.sql(query).fetchall(), key=repr)
