"""A function routes rows to several outputs with their own columns, called per key or vectorized."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.pipelines.engine.operators.stateful_stages import batch, reference
from tests.pipelines.engine.operators.test_order_windows_against_reference import engine
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
class Nothing:
    """The state of a key."""

    there: bool = True


def part_one(call: KeyContext[Nothing]) -> KeyUpdate[Nothing]:
    """Great values in the main output, small ones in another. Fields of another output are dropped."""
    rows = []
    for each in call.records:
        fields = {"great": each.fields["value"], "small": each.fields["value"], "both": each.time}
        rows.append(OutputRow(fields, each.time, None if each.fields["value"] > 3 else "small"))
    return KeyUpdate(Nothing(), rows)


def part_all(calls: KeyBatchContext) -> KeyBatchUpdate:
    """The same, vectorized."""
    value, time = calls.records.column("value"), calls.records.column("_time")
    to = pc.if_else(pc.greater(value, 3), pa.scalar(None, pa.string()), "small")
    columns = {
        KEY_INDEX_COLUMN: calls.records.column(KEY_INDEX_COLUMN),
        ROW_TIME_COLUMN: time,
        ROW_OUTPUT_COLUMN: to,
    }
    rows = pa.table({**columns, "great": value, "small": value, "both": time})
    return KeyBatchUpdate(pa.table({"there": np.ones(calls.states.num_rows, bool)}), rows)


GREAT = (Column("great", "BIGINT"), Column("both", "BIGINT"))
SMALL = SideOutput("small", (Column("small", "BIGINT"), Column("both", "BIGINT")))
SINKS = (PaneLog("great"), PaneLog("small", "small"))
WAYS = pytest.mark.parametrize(
    ("function", "vectorized"), [(part_one, False), (part_all, True)], ids=["plain", "vectorized"]
)


def stage_of(function: Any, *, vectorized: bool) -> Stage:
    """A stage with two outputs."""
    window = StatefulFunction(
        function_ref(function), state_type(Nothing), GREAT, vectorized=vectorized, outputs=(SMALL,)
    )
    return Stage("parted", ("records",), window, (), key=("key",), sinks=SINKS)


BATCHES = [batch(0, 0, ("a", 1, 5), ("b", 2, 1)), batch(1, 0, ("a", 3, 2))]


@WAYS
def test_each_row_has_the_columns_of_its_own_output(tmp_path: Path, function: Any, vectorized: bool) -> None:
    stage = stage_of(function, vectorized=vectorized)
    ran = engine(stage, BATCHES, tmp_path)
    assert ran == reference(stage, BATCHES)
    assert sorted((row[:5] for rows in ran for row in rows), key=repr) == [
        ("a", 5, 1, None, None),
        ("a", None, 3, 2, "small"),
        ("b", None, 2, 1, "small"),
    ]
    ready = compile_stage(stage, {field.name: field.type for field in FIELDS})
    rows = [dict(zip(ready.pane_schema.names, row, strict=True)) for told in ran for row in told]
    panes = pa.Table.from_pylist(rows, schema=ready.pane_schema)
    pane = ready.pane_schema.names[5:]
    assert select_output_panes(ready, panes).column_names == ["key", "great", "both", *pane]
    small = select_output_panes(ready, panes, "small")
    assert small.column_names == ["key", "both", "small", *pane]
    assert sorted(small.column("small").to_pylist()) == [1, 2]


@WAYS
def test_an_undeclared_output_is_named(tmp_path: Path, function: Any, vectorized: bool) -> None:
    stage = stage_of(function, vectorized=vectorized)
    assert isinstance(stage.window, StatefulFunction)
    whole = replace(stage, window=replace(stage.window, outputs=()))
    with pytest.raises(
        StatefulFunctionError, match="it sent a row to the unknown output 'small'; declared outputs: none"
    ):
        engine(whole, BATCHES, tmp_path)


BASE = read("sensors").key("device")
PARTED = BASE.stateful(
    part_one, state=Nothing, returns={"great": "BIGINT"}, outputs={"small": {"least": "BIGINT"}}
)


def test_a_plan_with_outputs_round_trips() -> None:
    plan = PARTED.write("great", mode="log").write("small", mode="log", output="small").plan
    assert fingerprint(plan_from_dict(plan_to_dict(plan))) == fingerprint(plan)
    alone = BASE.stateful(part_one, state=Nothing, returns={"n": "BIGINT"}).write("n", mode="log").plan
    assert not {"'output'", "'outputs'"} & set(str(plan_to_dict(alone)).replace(":", " ").split())


WRONG = {
    "is not written": lambda: PARTED.write("great", mode="log").plan,
    "has no output 'others'": lambda: (
        PARTED.write("a", mode="log").write("b", mode="log", output="others").plan
    ),
    "rows of a side output are never replaced": lambda: PARTED.write("small", output="small"),
    "the type that it has elsewhere: BIGINT": lambda: BASE.stateful(
        part_one, state=Nothing, returns={"n": "BIGINT"}, outputs={"small": {"n": "STRING"}}
    ),
    "has no side outputs": lambda: (
        BASE.aggregate(n=count()).window(global_window()).write("t", mode="log", output="small").plan
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_is_refused(message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        WRONG[message]()


def test_a_downstream_stage_reads_only_the_main_output() -> None:
    then = PARTED.write("great", mode="log").write("small", mode="log", output="small").then()
    with pytest.raises(DefinitionError, match="has no column 'least'"):
        _ = then.key("least").aggregate(n=count()).window(global_window()).write("t").plan
