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
    build_input,
    compile_plan_graph,
    run_engine,
    run_reference,
    split_inputs,
)
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.test_graphs_against_reference import (
    TOPICS,
    input_step_choices,
    make_join,
)
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
END_CONDITION = Comparison("value", "<", 1)
ONE_SIDED = ("inner", "left", "semi", "anti")


def make_plan(window: JoinWindow, kind: str, sides: tuple[str, str], lateness: int, **options: Any) -> Plan:
    join, aggregates = make_join(kind, *sides)
    stage = Stage(
        "pairs", sides, window, aggregates, key=("key",), lateness=lateness, join=join,
        sinks=(PaneLog("pairs"),), **options,
    )  # fmt: skip
    return validate_plan(Plan("pairs", (CLICKS, VIEWS), (stage,)))


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Any interval join or as-of join."""
    sides, lateness = tuple(draw(st.permutations(TOPICS))), draw(st.integers(0, 5))
    is_interval_join = draw(st.booleans())
    end_condition = draw(st.sampled_from([None, None, END_CONDITION]))
    window = (
        Between(draw(spans), draw(spans))
        if is_interval_join
        else AsOf(draw(st.none() | st.integers(1, 9)), end_condition)
    )
    kind = draw(st.sampled_from(JOIN_KINDS if is_interval_join else ONE_SIDED))
    return make_plan(window, kind, (sides[0], sides[1]), lateness, input_steps=draw(input_step_choices))


@settings(max_examples=scale_examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=plans(), batches=histories())
def test_every_pair_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch]
) -> None:
    topic_batches = split_inputs(batches)
    assert run_engine(plan, topic_batches, tmp_path_factory.mktemp("state")) == run_reference(
        plan, topic_batches
    )


def list_stored_versions(
    plan: Plan, steps: Sequence[tuple[int, int | None, int | None]], folder: Path
) -> list[list[int]]:
    """The times of a key's stored versions after each batch, given its watermark and optionally a record."""
    graph, tree = (
        compile_plan_graph(plan),
        trees.create_empty_tree(compile_plan_graph(plan).first_record_stage.state_schema),
    )
    watermark_before, versions_by_batch = MIN_TIMESTAMP_MS, []
    for number, (watermark, time, value) in enumerate(steps):
        fields = {"key": "a", "at": time, "value": value, "word": "x"}
        records = () if time is None else (InputRecord("views", 0, number, fields),)
        batch_time = BatchTime(number, number - 1, number, watermark_before, watermark)
        outcome = process_batch(
            graph.first_record_stage,
            tree,
            build_input(graph.first_record_stage, InputBatch(number, number, records)),
            batch_time,
        )
        tree = tree.with_run(outcome.changed_state, folder / f"run-{number}.arrow")
        groups = trees.distinct_groups(
            [run.groups.hi for run in tree.runs], [run.groups.lo for run in tree.runs]
        )
        versions_by_batch.append(sorted(tree.look_up_groups(groups)[0].column("time").to_pylist()))
        watermark_before = watermark
    return versions_by_batch


def test_versions_that_are_too_old_to_match_are_dropped(tmp_path: Path) -> None:
    plan = make_plan(AsOf(4), "left", ("clicks", "views"), 2)
    steps = [(0, 1, 1), (0, 3, 1), (8, None, None), (10, None, None), (11, 20, 1)]
    versions_by_batch = list_stored_versions(plan, steps, tmp_path)
    # A version of 1 matches a click until 5, which is in time until the watermark is at 8; one of 3 until 10.
    assert versions_by_batch == [[1], [1, 3], [3], [], [20]]


def find_late_addresses(plan: Plan, batches: list[InputBatch]) -> set[tuple[str, int, int]]:
    evaluator = Evaluator(plan)
    return {row.address for outcome in map(evaluator.run, batches) for row in outcome.late}


def list_timely_records(
    records: list[InputRecord], late_addresses: set[tuple[str, int, int]], source: str
) -> pa.Table:
    """The records of an input that were not late, in order of arrival."""
    rows = [
        {**record.fields, "arrival": number}
        for number, record in enumerate(records)
        if record.source == source and record.address not in late_addresses
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([*FIELDS, pa.field("arrival", pa.int64())]))


INTERVAL_CONDITION = 'ON a.key = b.key AND b."at" BETWEEN a."at" - {before} AND a."at" + {after}'
NEWEST_VERSION = """
(SELECT * FROM b QUALIFY row_number() OVER (PARTITION BY key, "at" ORDER BY arrival DESC) = 1) b
ON a.key = b.key AND a."at" >= b."at"
"""


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories(), before=spans, after=spans, kind=st.sampled_from(["inner", "left", "full"]))
def test_interval_joins_of_records_in_time_equal_duckdb(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch], before: int, after: int, kind: str
) -> None:
    plan = make_plan(Between(before, after), kind, ("clicks", "views"), 2)
    topic_batches = end_input(split_inputs(batches))
    on = INTERVAL_CONDITION.format(before=before, after=after)
    query = f"SELECT coalesce(a.key, b.key), a.value, a.word, b.value FROM a {kind.upper()} JOIN b {on}"
    assert run_join(plan, topic_batches, tmp_path_factory) == run_query(plan, topic_batches, query)


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories(), kind=st.sampled_from(["", "LEFT"]))
def test_as_of_joins_of_records_in_time_equal_duckdb(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch], kind: str
) -> None:
    plan = make_plan(AsOf(), "left" if kind else "inner", ("clicks", "views"), 2)
    topic_batches = end_input(
        [replace(batch, records=in_one_partition(batch)) for batch in split_inputs(batches)]
    )
    query = f"SELECT a.key, a.value, a.word, b.value FROM a ASOF {kind} JOIN {NEWEST_VERSION}"
    assert run_join(plan, topic_batches, tmp_path_factory) == run_query(plan, topic_batches, query)


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(batches=histories(), kind=st.sampled_from(["inner", "left", "anti"]))
def test_a_deleted_key_has_no_partner_from_its_deletion_on(
    tmp_path_factory: pytest.TempPathFactory, batches: list[InputBatch], kind: str
) -> None:
    plan = make_plan(AsOf(ends=END_CONDITION), kind, ("clicks", "views"), 2)
    topic_batches = end_input(
        [replace(batch, records=in_one_partition(batch)) for batch in split_inputs(batches)]
    )
    partner_exists = "b.key IS NOT NULL AND coalesce(b.value >= 1, true)"
    columns = f"a.*, {partner_exists} AS there, CASE WHEN {partner_exists} THEN b.value END AS other"
    rows = f"SELECT {columns} FROM a ASOF LEFT JOIN {NEWEST_VERSION}"
    columns_shown, condition = {
        "inner": (", other", "there"),
        "left": (", other", "true"),
        "anti": ("", "NOT there"),
    }[kind]
    query = f"SELECT key, value, word{columns_shown} FROM ({rows}) WHERE {condition}"
    width = 3 if kind == "anti" else 4
    assert [row[:width] for row in run_join(plan, topic_batches, tmp_path_factory)] == run_query(
        plan, topic_batches, query
    )


def test_a_deleted_key_leaves_no_state(tmp_path: Path) -> None:
    plan = make_plan(AsOf(ends=END_CONDITION), "left", ("clicks", "views"), 2)
    versions_by_batch = list_stored_versions(
        plan, [(0, 1, 5), (2, 2, 0), (4, None, None), (6, None, None)], tmp_path
    )
    assert versions_by_batch == [[1], [1, 2], [], []]


def in_one_partition(batch: InputBatch) -> tuple[InputRecord, ...]:
    """The records with offsets in one partition, in order of arrival, batch after batch."""
    first_offset = 100 * batch.id
    return tuple(
        replace(record, partition=0, offset=first_offset + number)
        for number, record in enumerate(batch.records)
    )


def end_input(batches: list[InputBatch]) -> list[InputBatch]:
    return [
        *(replace(batch, is_last=False) for batch in batches),
        InputBatch(len(batches), batches[-1].clock + 1, is_last=True),
    ]


def run_join(plan: Plan, batches: list[InputBatch], folders: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    rows = [
        row[:4]
        for batch_rows in run_engine(plan, batches, folders.mktemp("state"))
        for row in batch_rows["pairs"]
    ]
    return sorted(rows, key=repr)


def run_query(plan: Plan, batches: list[InputBatch], query: str) -> list[tuple[Any, ...]]:
    late_addresses = find_late_addresses(plan, batches)
    records = [record for batch in batches for record in batch.records]
    connection = duckdb.connect(config={"threads": 1})
    connection.register("a", list_timely_records(records, late_addresses, "clicks"))
    connection.register("b", list_timely_records(records, late_addresses, "views"))
    return sorted(connection.sql(query).fetchall(), key=repr)
