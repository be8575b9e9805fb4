"""Rows of joins may have list columns, over records and over retracting panes."""

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.graph_evaluation import (
    CLICKS,
    VIEWS,
    run_engine,
    run_reference,
    split_inputs,
)
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

PANE_PER_RECORD = {"trigger": Repeatedly(AfterCount(1)), "lateness": 5, "accumulation": "retracting"}


def make_list_stage(name: str, source: str, aggregate: Aggregate) -> Stage:
    """Some values of a topic, by key."""
    return Stage(
        name,
        (source,),
        Fixed(10),
        (AggregateOutput(f"in_{name}", aggregate),),
        sinks=(PaneLog(name),),
        key=("key",),
        **PANE_PER_RECORD,
    )  # type: ignore[arg-type]


def make_join_stage(kind: str, window: Window) -> Stage:
    """A join of both, with their lists."""
    columns = (JoinColumn("words", "words", "in_words"), JoinColumn("values", "values", "in_values"))
    columns = columns[:1] if kind in ("semi", "anti") else columns
    join = Join(kind, "words", "values", columns)  # type: ignore[arg-type]
    sides = (("left", "words"), ("right", "values"))
    aggregates = tuple(
        AggregateOutput(side, JoinMembers(name, join.fields_from(name))) for side, name in sides
    )
    return Stage(
        "both",
        ("words", "values"),
        window,
        aggregates,
        key=("key",),
        join=join,
        sinks=(PaneLog("both"),),
        **PANE_PER_RECORD,
    )  # type: ignore[arg-type]


@settings(max_examples=scale_examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(JOIN_KINDS), window=st.sampled_from([SameWindows(), Global()]), batches=histories()
)
def test_a_join_of_lists_equals_the_reference(
    tmp_path_factory: pytest.TempPathFactory, kind: str, window: Window, batches: list[InputBatch]
) -> None:
    words_stage, values_stage = (
        make_list_stage("words", "clicks", TopN("word", 2, by="value")),
        make_list_stage("values", "views", Collect("value")),
    )
    plan = validate_plan(
        Plan("both", (CLICKS, VIEWS), (words_stage, values_stage, make_join_stage(kind, window)))
    )
    topic_batches = split_inputs(batches)
    assert run_engine(plan, topic_batches, tmp_path_factory.mktemp("state")) == run_reference(
        plan, topic_batches
    )


def test_an_unordered_type_is_named_with_its_input() -> None:
    field_types = {"key": pa.string(), "in_values": pa.int64()}
    nested_lists = pa.list_(pa.list_(pa.float64()))
    assert (
        compile_stage(make_join_stage("left", Fixed(10)), {**field_types, "in_words": nested_lists})
        .result_fields[0]
        .type
        == nested_lists
    )
    map_type = pa.map_(pa.string(), pa.int64())
    with pytest.raises(
        DefinitionError, match=r"join\.take: words\.in_words has type map<string, int64>, whose"
    ):
        compile_stage(make_join_stage("left", Fixed(10)), {**field_types, "in_words": map_type})
