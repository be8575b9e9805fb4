"""Rows of joins may have list columns, over records and over retracting panes."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.graph_evaluation import CLICKS, VIEWS, engine, reference, split_inputs
from tests.pipelines.engine.operators.stage_strategies import histories

from penstock.conformance.reference import InputBatch
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.collect import Collect
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.errors import DefinitionError
from penstock.engine.operators.stage_compilation import compile_stage
from penstock.engine.plan.joins import JOIN_KINDS, Join, JoinColumn
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.same_windows import SameWindows
from penstock.engine.windows.window import Window

EACH = {"trigger": Repeatedly(AfterCount(1)), "lateness": 5, "accumulation": "retracting"}


def lists(name: str, source: str, of: Aggregate) -> Stage:
    """Some values of a topic, by key."""
    return Stage(
        name,
        (source,),
        Fixed(10),
        (AggregateOutput(f"in_{name}", of),),
        sinks=(PaneLog(name),),
        key=("key",),
        **EACH,
    )  # type: ignore[arg-type]


def joined(kind: str, window: Window) -> Stage:
    """A join of both, with their lists."""
    columns = (JoinColumn("words", "words", "in_words"), JoinColumn("values", "values", "in_values"))
    columns = columns[:1] if kind in ("semi", "anti") else columns
    join = Join(kind, "words", "values", columns)  # type: ignore[arg-type]
    sides = (("left", "words"), ("right", "values"))
    of = tuple(AggregateOutput(side, JoinMembers(name, join.fields_from(name))) for side, name in sides)
    return Stage(
        "both", ("words", "values"), window, of, key=("key",), join=join, sinks=(PaneLog("both"),), **EACH
    )  # type: ignore[arg-type]


@settings(max_examples=scale_examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(JOIN_KINDS), window=st.sampled_from([SameWindows(), Global()]), batches=histories()
)
def test_a_join_of_lists_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, kind: str, window: Window, batches: list[InputBatch]
) -> None:
    words, values = (
        lists("words", "clicks", TopN("word", 2, by="value")),
        lists("values", "views", Collect("value")),
    )
    plan = validate_plan(Plan("both", (CLICKS, VIEWS), (words, values, joined(kind, window))))
    two = split_inputs(batches)
    assert engine(plan, two, tmp_path_factory.mktemp("state")) == reference(plan, two)


def test_an_unordered_type_is_named_with_its_input() -> None:
    kinds = {"key": pa.string(), "in_values": pa.int64()}
    deep = pa.list_(pa.list_(pa.float64()))
    assert compile_stage(joined("left", Fixed(10)), {**kinds, "in_words": deep}).result_fields[0].type == deep
    pairs = pa.map_(pa.string(), pa.int64())
    with pytest.raises(
        DefinitionError, match=r"join\.take: words\.in_words has type map<string, int64>, whose"
    ):
        compile_stage(joined("left", Fixed(10)), {**kinds, "in_words": pairs})
