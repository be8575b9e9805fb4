"""List columns pass through stages unchanged, unless a stage orders or groups by them."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.graph_evaluation import (
    CLICKS,
    compile_plan_graph,
    run_engine,
    run_reference,
    split_inputs,
)
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.test_lists_in_joins import PANE_PER_RECORD, make_list_stage

from penstock.conformance.reference import InputBatch
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.collect import Collect
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.first import First
from penstock.engine.aggregates.last import Last
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.same_windows import SameWindows

LIST_AGGREGATES = (
    AggregateOutput("first", First("in_words")),
    AggregateOutput("last", Last("in_words")),
    AggregateOutput("all", Collect("in_words")),
    AggregateOutput("most", TopN("in_words", 2, "records_in")),
)


def make_plan(window: SameWindows | Fixed | Global, *outputs: AggregateOutput) -> Plan:
    """Lists by key, and a downstream stage."""
    words_stage = make_list_stage("words", "clicks", Collect("word"))
    words_stage = replace(
        words_stage, aggregates=(*words_stage.aggregates, AggregateOutput("records_in", Count()))
    )
    after_stage = Stage("after", ("words",), window, outputs, sinks=(PaneLog("after"),), **PANE_PER_RECORD)
    return validate_plan(Plan("lists", (CLICKS,), (words_stage, after_stage)))


@settings(max_examples=scale_examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(window=st.sampled_from([SameWindows(), Fixed(20), Global()]), batches=histories())
def test_lists_pass_through_the_next_stage(
    tmp_path_factory: pytest.TempPathFactory, window: SameWindows | Fixed | Global, batches: list[InputBatch]
) -> None:
    plan, topic_batches = make_plan(window, *LIST_AGGREGATES), split_inputs(batches)
    assert run_engine(plan, topic_batches, tmp_path_factory.mktemp("state")) == run_reference(
        plan, topic_batches
    )


@pytest.mark.parametrize("aggregate", [Max("in_words"), Distinct("in_words"), TopN("in_words", 1)])
def test_aggregates_that_order_by_a_list_are_refused(aggregate: Aggregate) -> None:
    with pytest.raises(DefinitionError, match="values have no order"):
        compile_plan_graph(make_plan(SameWindows(), AggregateOutput("out", aggregate)))


def test_a_list_as_key_is_refused() -> None:
    plan = make_plan(SameWindows(), AggregateOutput("n", Count()))
    first, after = plan.stages
    with pytest.raises(DefinitionError, match="key: 'in_words' of stage after has the type list"):
        compile_plan_graph(replace(plan, stages=(first, replace(after, key=("in_words",)))))
