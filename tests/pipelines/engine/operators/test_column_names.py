"""No user column can collide with a column of the state or of panes."""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pytest

from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import DefinitionError
from penstock.engine.functions.stateful import KeyContext, KeyUpdate
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.joins import Join, JoinColumn
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.plan.validation.column_names import (
    ORDER_STATE_COLUMNS,
    RESERVED_COLUMNS,
    STATE_COLUMNS,
    check_column_names,
    reserved_state_columns,
)
from penstock.engine.state.header_columns import STATE_HEADER
from penstock.engine.windows.as_of import AsOf
from penstock.engine.windows.between import Between
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.delta_policy import DeltaPolicy
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window
from penstock.stream import after_count, count, fixed, last, mean, repeatedly, sessions, sum_, top

TYPES = {"key": pa.string(), "value": pa.int64()}
WINDOWS = {
    "fixed": fixed("1 minute"),
    "sessions": sessions("1 minute"),
    "tumbling": Tumbling(CountPolicy(3)),
    "by distance": SlidingOrder(DeltaPolicy("value", 1), DeltaPolicy("value", 2)),
}
AGGREGATES = {
    "count": count(),
    "sum": sum_("value"),
    "mean": mean("value"),
    "last": last("value"),
    "top": top(1, "value"),
}


def compile_windowed_stage(window: Window, **aggregates: object) -> CompiledStage:
    outputs = tuple(AggregateOutput(name, aggregate) for name, aggregate in aggregates.items())  # type: ignore[arg-type]
    trigger_options = (
        {} if isinstance(window, Tumbling | SlidingOrder) else {"trigger": repeatedly(after_count(1))}
    )
    return compile_stage(Stage("s", ("i",), window, outputs, (), ("key",), **trigger_options), TYPES)  # type: ignore[arg-type]


def list_state_names(stage: CompiledStage) -> set[str]:
    """State columns that are neither key nor part of an aggregate nor named after a field."""
    other_names = {*TYPES, *(part.name for part in stage.parts)}
    field_prefixes = ("buffered_", "delta_", "trigger")
    names = {*STATE_HEADER.names, *stage.state_schema.names, *stage.partial_schema.names} - other_names
    names = {name for name in names if not name.endswith("@last_pane")}
    return {name for name in names if not name.startswith(("_", *field_prefixes)) or name in STATE_COLUMNS}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_keys_with_the_name_of_a_state_column_are_reserved(window: Window) -> None:
    assert list_state_names(
        compile_windowed_stage(window, n=count())
    ) <= RESERVED_COLUMNS | reserved_state_columns(window)


@pytest.mark.parametrize("window", [Between(1, 1), AsOf()], ids=["between", "as of"])
def test_join_keys_with_the_name_of_a_state_column_are_reserved(window: Window) -> None:
    join = Join("inner", "a", "b", (JoinColumn("value", "a", "value"), JoinColumn("other", "b", "value")))
    sides = (
        AggregateOutput("left", JoinMembers("a", ("value",))),
        AggregateOutput("right", JoinMembers("b", ("value",))),
    )
    stage = compile_stage(Stage("s", ("a", "b"), window, sides, (), ("key",), join=join), TYPES)
    assert list_state_names(stage) <= RESERVED_COLUMNS | reserved_state_columns(window)


@pytest.mark.parametrize("name", sorted((STATE_COLUMNS | ORDER_STATE_COLUMNS) - RESERVED_COLUMNS))
def test_a_result_may_have_the_name_of_any_state_column(name: str) -> None:
    aggregates = {
        "count": count(),
        "sum": sum_("value"),
        "mean": mean("value"),
        "last": last("value"),
        "top": top(1, "value"),
    }
    for window in WINDOWS.values():
        for kind, aggregate in aggregates.items():
            stage = compile_windowed_stage(window, **{name: aggregate, "other": count()})
            for columns in ([*STATE_HEADER.names, *stage.state_schema.names], stage.partial_schema.names):
                assert max(Counter(columns).values()) == 1, (kind, window)


def test_no_result_collides_with_the_last_pane_of_another() -> None:
    outputs = (AggregateOutput("n", sum_("value")), AggregateOutput("last_pane_n", sum_("value")))
    for window in (fixed("1 minute"), sessions("1 minute")):
        options = {"accumulation": "retracting", "key": ("key",)}
        stage = compile_stage(Stage("s", ("i",), window, outputs, (), **options), TYPES)  # type: ignore[arg-type]
        assert max(Counter(stage.state_schema.names).values()) == 1


@dataclass
class Total:
    """The state of the function below."""

    n: int = 0


def keep_total(call: KeyContext[Total]) -> KeyUpdate[Total]:
    return KeyUpdate(call.state or Total(), [])


FUNCTION_OPTIONS: dict[str, dict[str, Any]] = {
    "per key": {},
    "event time": {"order": "event_time"},
    "vectorized": {"vectorized": True},
}


@pytest.mark.parametrize("options", FUNCTION_OPTIONS.values(), ids=FUNCTION_OPTIONS)
def test_function_keys_with_the_name_of_a_state_column_are_refused(options: dict[str, Any]) -> None:
    columns = (Column("total", "BIGINT"),)
    window = StatefulFunction(function_ref(keep_total), state_type(Total), columns, **options)
    stage = Stage("s", ("i",), window, (), (), ("key",))
    state_columns = {column.name for column in compile_stage(stage, TYPES).stored_columns}
    assert {"timers", "newest_time"} < state_columns
    for name in state_columns:
        keyed = replace(stage, key=(name,))
        names = compile_stage(keyed, {**TYPES, name: pa.string()}).state_schema.names
        assert names.count(name) == 2, "it really collides"
        with pytest.raises(DefinitionError, match=f"'{name}' is a column of the state"):
            check_column_names(keyed)
    check_column_names(stage)
