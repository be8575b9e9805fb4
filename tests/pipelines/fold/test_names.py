"""No column of a person's own can hide one that the state or a pane has."""

from collections import Counter

import pyarrow as pa
import pytest

from penstock.pipelines.fold.stage import ReadyStage, ready_stage
from penstock.pipelines.model import after_count, count, fixed, last, mean, repeatedly, sessions, sum_, top
from penstock.pipelines.plan import (
    AsOf,
    Between,
    CountPolicy,
    DeltaPolicy,
    Join,
    Members,
    Output,
    SlidingOrder,
    Stage,
    Taken,
    Tumbling,
    Window,
)
from penstock.pipelines.plan.check_names import KEPT, KEPT_IN_ORDER, RESERVED, kept_beside
from penstock.pipelines.state.columns import HEADER

TYPES = {"key": pa.string(), "value": pa.int64()}
WINDOWS = {
    "fixed": fixed("1 minute"),
    "sessions": sessions("1 minute"),
    "tumbling": Tumbling(CountPolicy(3)),
    "by distance": SlidingOrder(DeltaPolicy("value", 1), DeltaPolicy("value", 2)),
}
OF = {
    "count": count(),
    "sum": sum_("value"),
    "mean": mean("value"),
    "last": last("value"),
    "top": top(1, "value"),
}


def stage_of(window: Window, **aggregates: object) -> ReadyStage:
    outputs = tuple(Output(name, of) for name, of in aggregates.items())  # type: ignore[arg-type]
    when = {} if isinstance(window, Tumbling | SlidingOrder) else {"trigger": repeatedly(after_count(1))}
    return ready_stage(Stage("s", ("i",), window, outputs, (), ("key",), **when), TYPES)  # type: ignore[arg-type]


def own(stage: ReadyStage) -> set[str]:
    """The columns of a state that are neither key nor a part of an aggregate, nor a field's own."""
    others = {*TYPES, *(part.name for part in stage.parts)}
    fields = ("held_", "distance_", "shown_", "trigger")
    names = {*HEADER.names, *stage.state_columns.names, *stage.partial_columns.names} - others
    return {name for name in names if not name.startswith(("_", *fields)) or name in KEPT}


@pytest.mark.parametrize("window", WINDOWS.values(), ids=WINDOWS)
def test_no_key_may_be_named_as_a_column_of_the_state(window: Window) -> None:
    assert own(stage_of(window, n=count())) <= RESERVED | kept_beside(window)


@pytest.mark.parametrize("window", [Between(1, 1), AsOf()], ids=["between", "as of"])
def test_no_key_of_a_join_may_be_named_as_a_column_of_the_state(window: Window) -> None:
    join = Join("inner", "a", "b", (Taken("value", "a", "value"), Taken("other", "b", "value")))
    sides = (Output("left", Members("a", ("value",))), Output("right", Members("b", ("value",))))
    stage = ready_stage(Stage("s", ("a", "b"), window, sides, (), ("key",), join=join), TYPES)
    assert own(stage) <= RESERVED | kept_beside(window)


@pytest.mark.parametrize("name", sorted((KEPT | KEPT_IN_ORDER) - RESERVED))
def test_a_result_may_have_the_name_of_any_column_of_the_state(name: str) -> None:
    of = {
        "count": count(),
        "sum": sum_("value"),
        "mean": mean("value"),
        "last": last("value"),
        "top": top(1, "value"),
    }
    for window in WINDOWS.values():
        for kind, each in of.items():
            stage = stage_of(window, **{name: each, "other": count()})
            for columns in ([*HEADER.names, *stage.state_columns.names], stage.partial_columns.names):
                assert max(Counter(columns).values()) == 1, (kind, window)
