"""A function routes rows to several outputs with their own columns, called per key or vectorized."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.engine.operators.stateful_stages import make_batch, run_reference
from tests.pipelines.engine.operators.test_order_windows_against_reference import run_engine
from tests.pipelines.engine.operators.test_windows_against_reference import FIELDS

from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import DefinitionError, StatefulFunctionError
from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.engine.functions.vectorized import (
    KEY_INDEX_COLUMN,
    ROW_OUTPUT_COLUMN,
    ROW_TIME_COLUMN,
    KeyBatchContext,
    KeyBatchUpdate,
)
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.operators.stateful.side_outputs import select_output_panes
from penstock.engine.plan.codec import fingerprint, plan_from_dict, plan_to_dict
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import SideOutput, StatefulFunction, state_type
from penstock.engine.sinks.pane_log import PaneLog
from penstock.stream import count, global_window, read


@dataclass(frozen=True)
class EmptyState:
    """The state of a key."""

    exists: bool = True


def split_per_key(call: KeyContext[EmptyState]) -> KeyUpdate[EmptyState]:
    """Great values in the main output, small ones in another. Fields of another output are dropped."""
    rows = []
    for record in call.records:
        fields = {"great": record.fields["value"], "small": record.fields["value"], "both": record.time}
        rows.append(OutputRow(fields, record.time, None if record.fields["value"] > 3 else "small"))
    return KeyUpdate(EmptyState(), rows)


def split_vectorized(calls: KeyBatchContext) -> KeyBatchUpdate:
    """The same, vectorized."""
    value, time = calls.records.column("value"), calls.records.column("_time")
    output = pc.if_else(pc.greater(value, 3), pa.scalar(None, pa.string()), "small")
    columns = {
        KEY_INDEX_COLUMN: calls.records.column(KEY_INDEX_COLUMN),
        ROW_TIME_COLUMN: time,
        ROW_OUTPUT_COLUMN: output,
    }
    rows = pa.table({**columns, "great": value, "small": value, "both": time})
    return KeyBatchUpdate(pa.table({"exists": np.ones(calls.states.num_rows, bool)}), rows)


MAIN_COLUMNS = (Column("great", "BIGINT"), Column("both", "BIGINT"))
SMALL_OUTPUT = SideOutput("small", (Column("small", "BIGINT"), Column("both", "BIGINT")))
SINKS = (PaneLog("great"), PaneLog("small", "small"))
BOTH_FUNCTIONS = pytest.mark.parametrize(
    ("function", "vectorized"),
    [(split_per_key, False), (split_vectorized, True)],
    ids=["plain", "vectorized"],
)


def make_stage(function: Any, *, vectorized: bool) -> Stage:
    """A stage with two outputs."""
    window = StatefulFunction(
        function_ref(function),
        state_type(EmptyState),
        MAIN_COLUMNS,
        vectorized=vectorized,
        outputs=(SMALL_OUTPUT,),
    )
    return Stage("parted", ("records",), window, (), key=("key",), sinks=SINKS)


BATCHES = [make_batch(0, 0, ("a", 1, 5), ("b", 2, 1)), make_batch(1, 0, ("a", 3, 2))]


@BOTH_FUNCTIONS
def test_each_row_has_the_columns_of_its_own_output(tmp_path: Path, function: Any, vectorized: bool) -> None:
    stage = make_stage(function, vectorized=vectorized)
    rows_by_batch = run_engine(stage, BATCHES, tmp_path)
    assert rows_by_batch == run_reference(stage, BATCHES)
    assert sorted((row[:5] for rows in rows_by_batch for row in rows), key=repr) == [
        ("a", 5, 1, None, None),
        ("a", None, 3, 2, "small"),
        ("b", None, 2, 1, "small"),
    ]
    compiled_stage = compile_stage(stage, {field.name: field.type for field in FIELDS})
    rows = [
        dict(zip(compiled_stage.pane_schema.names, row, strict=True))
        for batch_rows in rows_by_batch
        for row in batch_rows
    ]
    panes = pa.Table.from_pylist(rows, schema=compiled_stage.pane_schema)
    pane_columns = compiled_stage.pane_schema.names[5:]
    assert select_output_panes(compiled_stage, panes).column_names == ["key", "great", "both", *pane_columns]
    small_rows = select_output_panes(compiled_stage, panes, "small")
    assert small_rows.column_names == ["key", "both", "small", *pane_columns]
    assert sorted(small_rows.column("small").to_pylist()) == [1, 2]


@BOTH_FUNCTIONS
def test_an_undeclared_output_is_named(tmp_path: Path, function: Any, vectorized: bool) -> None:
    stage = make_stage(function, vectorized=vectorized)
    assert isinstance(stage.window, StatefulFunction)
    without_outputs = replace(stage, window=replace(stage.window, outputs=()))
    with pytest.raises(
        StatefulFunctionError, match="it sent a row to the unknown output 'small'; declared outputs: none"
    ):
        run_engine(without_outputs, BATCHES, tmp_path)


KEYED = read("sensors").key("device")
SPLIT = KEYED.stateful(
    split_per_key, state=EmptyState, returns={"great": "BIGINT"}, outputs={"small": {"least": "BIGINT"}}
)


def test_a_plan_with_outputs_round_trips() -> None:
    plan = SPLIT.write("great", mode="log").write("small", mode="log", output="small").plan
    assert fingerprint(plan_from_dict(plan_to_dict(plan))) == fingerprint(plan)
    without_outputs = (
        KEYED.stateful(split_per_key, state=EmptyState, returns={"n": "BIGINT"}).write("n", mode="log").plan
    )
    assert not {"'output'", "'outputs'"} & set(str(plan_to_dict(without_outputs)).replace(":", " ").split())


INVALID_DEFINITIONS = {
    "is not written": lambda: SPLIT.write("great", mode="log").plan,
    "has no output 'others'": lambda: (
        SPLIT.write("a", mode="log").write("b", mode="log", output="others").plan
    ),
    "rows of a side output are never replaced": lambda: SPLIT.write("small", output="small"),
    "the type that it has elsewhere: BIGINT": lambda: KEYED.stateful(
        split_per_key, state=EmptyState, returns={"n": "BIGINT"}, outputs={"small": {"n": "STRING"}}
    ),
    "has no side outputs": lambda: (
        KEYED.aggregate(n=count()).window(global_window()).write("t", mode="log", output="small").plan
    ),
}


@pytest.mark.parametrize("message", INVALID_DEFINITIONS)
def test_an_invalid_definition_of_outputs_is_refused(message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        INVALID_DEFINITIONS[message]()


def test_a_downstream_stage_reads_only_the_main_output() -> None:
    downstream = SPLIT.write("great", mode="log").write("small", mode="log", output="small").then()
    with pytest.raises(DefinitionError, match="has no column 'least'"):
        _ = downstream.key("least").aggregate(n=count()).window(global_window()).write("t").plan
