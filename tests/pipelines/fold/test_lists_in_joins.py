"""Rows of joins may have columns that are lists, over records and over panes that are taken back."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.pipelines.fold.graphs import CLICKS, VIEWS, engine, of_two, reference
from tests.pipelines.fold.strategies import histories

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.fold.stage import ready_stage
from penstock.pipelines.plan import (
    Aggregate,
    Collect,
    Fixed,
    Global,
    Join,
    Members,
    Output,
    PaneLog,
    Plan,
    Repeatedly,
    SameWindows,
    Stage,
    Taken,
    TopN,
    check,
)
from penstock.pipelines.plan.joins import KINDS
from penstock.pipelines.plan.triggers import AfterCount
from penstock.pipelines.plan.windows import Window
from penstock.pipelines.reference import Batch

EACH = {"trigger": Repeatedly(AfterCount(1)), "lateness": 5, "accumulation": "retracting"}


def lists(name: str, source: str, of: Aggregate) -> Stage:
    """Some values of a topic, by key."""
    return Stage(
        name, (source,), Fixed(10), (Output(f"in_{name}", of),), sinks=(PaneLog(name),), key=("key",), **EACH
    )  # type: ignore[arg-type]


def joined(kind: str, window: Window) -> Stage:
    """A join of both that shows their lists."""
    columns = (Taken("words", "words", "in_words"), Taken("values", "values", "in_values"))
    columns = columns[:1] if kind in ("semi", "anti") else columns
    join = Join(kind, "words", "values", columns)  # type: ignore[arg-type]
    sides = (("left", "words"), ("right", "values"))
    of = tuple(Output(side, Members(name, join.fields_of(name))) for side, name in sides)
    return Stage(
        "both", ("words", "values"), window, of, key=("key",), join=join, sinks=(PaneLog("both"),), **EACH
    )  # type: ignore[arg-type]


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(kind=st.sampled_from(KINDS), window=st.sampled_from([SameWindows(), Global()]), batches=histories())
def test_a_join_of_lists_says_what_the_reference_says(
    tmp_path_factory: pytest.TempPathFactory, kind: str, window: Window, batches: list[Batch]
) -> None:
    words, values = (
        lists("words", "clicks", TopN("word", 2, by="value")),
        lists("values", "views", Collect("value")),
    )
    plan = check(Plan("both", (CLICKS, VIEWS), (words, values, joined(kind, window))))
    two = of_two(batches)
    assert engine(plan, two, tmp_path_factory.mktemp("state")) == reference(plan, two)


def test_what_has_no_order_is_named_with_its_input() -> None:
    kinds = {"key": pa.string(), "in_values": pa.int64()}
    deep = pa.list_(pa.list_(pa.float64()))
    assert ready_stage(joined("left", Fixed(10)), {**kinds, "in_words": deep}).results[0].type == deep
    pairs = pa.map_(pa.string(), pa.int64())
    with pytest.raises(
        DefinitionError, match=r"join\.take: words\.in_words is of type map<string, int64>, whose"
    ):
        ready_stage(joined("left", Fixed(10)), {**kinds, "in_words": pairs})
