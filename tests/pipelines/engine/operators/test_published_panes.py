"""Panes that are published and read by another stream give the results of a single graph, however batches are
cut.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.duckdb_partials import compute_partials, list_elements
from tests.pipelines.engine.operators.graph_runner import GraphRunner
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.test_chains_against_reference import (
    SECOND_AGGREGATES,
    apply_changes,
    chained_plans,
    is_valid_plan,
    list_pane_rows,
)
from tests.pipelines.engine.operators.test_windows_against_reference import FIELDS, make_pane_row

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.engine.errors import ChangelogLatenessError, DefinitionError
from penstock.engine.operators.changelog.published_panes import make_published_rows
from penstock.engine.operators.stage_graph import compile_graph, resolve_batch_time
from penstock.engine.plan.changelog import CHANGELOG_COLUMNS, PANE_WATERMARK_COLUMN, ChangelogWindows
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.changelog_topic import ChangelogTopic
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.tables.published_rows import encode_rows
from penstock.stream import count, fixed, from_document, read, read_panes, sum_

COLUMNS = (
    Column("key", "STRING"),
    Column("word", "STRING"),
    Column("n", "BIGINT"),
    Column("total", "BIGINT"),
)
ARROW_TYPES = {"STRING": pa.string(), "BIGINT": pa.int64()}
TYPES = {column.name: ARROW_TYPES[column.type] for column in (*COLUMNS, *CHANGELOG_COLUMNS)}
PARTITIONS = frozenset({("panes", 0), ("panes", 1)})


def make_reader_plan(downstream_stage: Stage, lateness: int) -> Plan:
    """The downstream stage of a chain, over the published panes of the first."""
    source = PlanSource("panes", TopicOrigin("panes"), (*COLUMNS, *CHANGELOG_COLUMNS), PANE_WATERMARK_COLUMN)
    panes_stage = Stage(
        "s0", ("panes",), ChangelogWindows(COLUMNS), (), lateness=lateness, accumulation="retracting"
    )
    return Plan("second", (source,), (panes_stage, replace(downstream_stage, inputs=("s0",))))


def read_published_records(rows: pa.Table, key: Sequence[str], offsets: list[int]) -> list[InputRecord]:
    """The records of a batch in a topic of two partitions: a key in one of them, the end of a batch in both."""
    records = []
    for message in encode_rows(rows, key):
        fields = json.loads(message.value)
        columns = {name: fields.get(name) for name in TYPES}
        for partition in (0, 1) if message.key is None else (sum(message.key) % 2,):
            records.append(InputRecord("panes", partition, offsets[partition], columns))
            offsets[partition] += 1
    return records


def split_into_batches(records: list[InputRecord], choose: Any) -> list[list[InputRecord]]:
    """The records as a reader may receive them: each partition in order, split into batches at random."""
    unread = [[record for record in records if record.partition == number] for number in (0, 1)]
    batches = []
    while any(unread):
        sizes = [choose(len(partition_records)) for partition_records in unread]
        if not any(sizes):
            sizes = [len(partition_records) for partition_records in unread]
        batches.append(
            [
                record
                for partition_records, size in zip(unread, sizes, strict=True)
                for record in partition_records[:size]
            ]
        )
        unread = [partition_records[size:] for partition_records, size in zip(unread, sizes, strict=True)]
    return batches


def reader_watermark(read_records: Sequence[InputRecord]) -> int:
    """The lower watermark of both partitions."""
    watermarks = [
        max(
            (
                record.fields[PANE_WATERMARK_COLUMN]
                for record in read_records
                if record.partition == partition
            ),
            default=MIN_TIMESTAMP_MS,
        )
        for partition in (0, 1)
    ]
    return min(watermarks)


@settings(max_examples=scale_examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=chained_plans().filter(is_valid_plan), batches=histories(), data=st.data())
def test_two_streams_equal_one_graph(
    tmp_path_factory: pytest.TempPathFactory, plan: Plan, batches: list[InputBatch], data: st.DataObject
) -> None:
    first_stage, later_stage = plan.stages[0], plan.stages[1]
    if (
        later_stage.steps
        or later_stage.accumulation != "retracting"
        or first_stage.window.uses_processing_time
    ):
        return
    later_stage = replace(later_stage, final_pane="when_changed")
    reader_plan = make_reader_plan(later_stage, first_stage.lateness)
    if not is_valid_plan(reader_plan):  # a reader treats panes as retractable, even if these are not
        return
    plan = replace(plan, stages=(replace(first_stage, topics=(ChangelogTopic("panes"),)), later_stage))
    batches = [
        *(b for b in batches if not b.is_last),
        InputBatch(len(batches), batches[-1].clock + 1, is_last=True),
    ]
    joint_graph = GraphRunner(
        compile_graph(plan, {"s0": {f.name: f.type for f in FIELDS}}), tmp_path_factory.mktemp("whole")
    )
    records: list[InputRecord] = []
    offsets, joint_rows = [0, 0], []
    for batch in batches:
        next_watermark = MAX_TIMESTAMP_MS if batch.is_last else int(batch.watermark or 0)
        stage = joint_graph.graph.first_record_stage
        stage_input = compute_partials(stage, batch.records, FIELDS, "at", batch.clock)
        results, batch_time = joint_graph.run({"s0": stage_input}, batch.clock, next_watermark)
        joint_rows.append({"s1": list_pane_rows(results["s1"].panes)})
        rows = make_published_rows(stage, results["s0"], resolve_batch_time(stage, batch_time))
        records += read_published_records(rows, stage.plan.key, offsets)
    reader = GraphRunner(compile_graph(reader_plan, {"s0": TYPES}), tmp_path_factory.mktemp("reader"))
    evaluator, reader_rows, reference_rows, read_records = Evaluator(reader_plan), [], [], []
    batches_of_reader = split_into_batches(records, lambda count: data.draw(st.integers(0, count)))
    for number, batch_records in enumerate([*batches_of_reader, []]):
        read_records += batch_records
        is_last = number == len(batches_of_reader)
        next_watermark = MAX_TIMESTAMP_MS if is_last else reader_watermark(read_records)
        results, _ = reader.run(
            {"s0": list_elements(reader.graph.first_record_stage, batch_records, PANE_WATERMARK_COLUMN)},
            number,
            next_watermark,
        )
        reader_rows.append({"s1": list_pane_rows(results["s1"].panes)})
        outcome = evaluator.run(
            InputBatch(
                number, number, tuple(batch_records), PARTITIONS, None if is_last else next_watermark, is_last
            )
        )
        reference_rows.append({"s1": sorted(map(make_pane_row, outcome.stage_panes["s1"]), key=repr)})
    assert reader_rows == reference_rows
    columns = len(later_stage.key) + len(later_stage.aggregates) + 2
    assert apply_changes(reader_rows, "s1", columns) == apply_changes(joint_rows, "s1", columns)


def test_a_pane_with_more_lateness_than_allowed_is_refused(tmp_path: Path) -> None:
    later_stage = Stage("s1", ("s0",), fixed(10), SECOND_AGGREGATES, accumulation="retracting")
    reader = GraphRunner(compile_graph(make_reader_plan(later_stage, 0), {"s0": TYPES}), tmp_path)
    pane = {"key": "a", "n": 1, "window_start": 0, "window_end": 5, "kind": "insert", "pane_change": 1,
            "pane_passed": 0, "pane_lateness": 7}  # fmt: skip
    stage_input = list_elements(
        reader.graph.first_record_stage,
        [InputRecord("panes", 0, 0, {**dict.fromkeys(TYPES), **pane})],
        PANE_WATERMARK_COLUMN,
    )
    with pytest.raises(
        ChangelogLatenessError,
        match=r"topic panes: .* for 7 ms, and read_panes allows 0 ms\. Set lateness='7 ms'",
    ):
        reader.run({"s0": stage_input}, 0, 0)


def test_values_without_a_json_form_round_trip() -> None:
    row = {
        "kind": "insert",
        "at": 1.5,
        "x": float("nan"),
        "y": float("-inf"),
        "window_end": MAX_TIMESTAMP_MS,
        "b": b"\x00\xff",
    }
    (message,) = encode_rows(pa.Table.from_pylist([row]), ["x", "b"])
    assert json.loads(message.value) == {**row, "x": "NaN", "y": "-Infinity", "window_end": None, "b": "AP8="}
    assert message.key == b'["NaN","AP8="]'


def test_non_finite_numbers_are_strings_within_lists_too() -> None:
    row = {"x": [1.5, float("nan"), None, float("-inf")], "y": [[float("inf")], []], "kind": "insert"}
    (message,) = encode_rows(pa.Table.from_pylist([row]), ["x"])
    expected = {"x": [1.5, "NaN", None, "-Infinity"], "y": [["Infinity"], []], "kind": "insert"}
    assert json.loads(message.value) == expected
    assert message.key == b'[[1.5,"NaN",null,"-Infinity"]]'


def test_maps_with_keys_of_text_are_objects() -> None:
    maps = {
        "m": pa.map_(pa.string(), pa.float64()),
        "nested": pa.list_(pa.struct([("p", pa.map_(pa.string(), pa.map_(pa.string(), pa.int64())))])),
        "numbered": pa.map_(pa.int64(), pa.string()),
    }
    row = {
        "kind": "insert",
        "m": [("a", 1.5), ("b", float("nan"))],
        "nested": [{"p": [("x", [("y", 1)])]}, {"p": None}, None],
        "numbered": [(1, "one")],
    }
    schema = pa.schema([("kind", pa.string()), *maps.items()])
    empty = dict.fromkeys(schema.names) | {"kind": "delete"}
    first, second = encode_rows(pa.Table.from_pylist([row, empty], schema), ["m"])
    assert json.loads(first.value) == {
        "kind": "insert",
        "m": {"a": 1.5, "b": "NaN"},
        "nested": [{"p": {"x": {"y": 1}}}, {"p": None}, None],
        "numbered": [[1, "one"]],
    }
    assert (first.key, json.loads(second.value)) == (b'[{"a":1.5,"b":"NaN"}]', empty)


PER_MINUTE = (
    read("sensors").key("device").aggregate(n=count()).window(fixed("1 minute")).accumulation("retracting")
)
PANES = read_panes("minutes", columns={"device": "STRING", "n": "BIGINT"}, lateness="1 hour")
PER_HOUR = PANES.aggregate(n=sum_("n")).window(fixed("1 hour")).write("per_hour")


def test_publisher_and_reader_can_be_written_in_yaml() -> None:
    publisher = {
        "read": "sensors", "key": "device", "aggregate": {"n": "count()"}, "window": {"fixed": "1 minute"},
        "accumulation": "retracting", "publish": "minutes",
    }  # fmt: skip
    assert from_document(publisher).to_plan("p") == PER_MINUTE.publish("minutes").to_plan("p")
    reader = {
        "read_panes": {"topic": "minutes", "columns": {"device": "STRING", "n": "BIGINT"}, "lateness": "1 hour"},
        "aggregate": {"n": "sum(n)"}, "window": {"fixed": "1 hour"}, "write": "per_hour",
    }  # fmt: skip
    assert from_document(reader).plan == PER_HOUR.plan
    for plan in (PER_HOUR.plan, PER_MINUTE.publish("minutes").to_plan("p")):
        assert plan_from_dict(plan_to_dict(plan)) == plan
    assert fingerprint(PER_MINUTE.write("t").plan) != fingerprint(
        PER_MINUTE.write("t").publish("minutes").plan
    )


def test_a_reader_is_a_stage_over_retracting_panes() -> None:
    panes_stage, hour_stage = PER_HOUR.plan.stages
    assert (panes_stage.name, panes_stage.lateness, hour_stage.lateness, hour_stage.accumulation) == (
        "minutes_panes", 3_600_000, 3_600_000, "retracting"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("define", "message"),
    [
        (lambda: read_panes("minutes", columns={}), r"read_panes\.columns: no columns"),
        (lambda: read_panes("minutes", columns={"kind": "STRING"}), "a reserved column"),
        (
            lambda: PANES.sql("SELECT * FROM input").aggregate(n=count()).write("t").plan,
            "a SQL step over panes",
        ),
        (lambda: PANES.aggregate(n=sum_("m")).write("t").plan, "has no column 'm'"),
        (
            lambda: read("sensors").aggregate(pane_change=count()).window(fixed(1)).publish("t").to_plan("t"),
            "a column of every published pane",
        ),
    ],
)
def test_invalid_publishing_and_reading_is_refused(define: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        define()
