"""A pipeline is written as SQL, YAML and Python, and each form gives the same plan."""

from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.plan_strategies import event_windows, modes, order_windows, processing_windows, triggers
from tests.pipelines.stream.test_condition_text import conditions

from penstock.engine.definition.predicates import Predicate, predicate_fields
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.steps import FilterStep
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.window import Window
from penstock.pipelines.catalog import load_pipeline, load_plan, pipeline_names
from penstock.stream import (
    Pipeline,
    collect,
    combine,
    count,
    distinct,
    fixed,
    from_document,
    last,
    mean,
    quantiles,
    read,
    sum_,
    top,
)
from penstock.stream.forms.form_writer import PipelineForm, read_form, write_pipeline
from penstock.stream.pipeline import add_step

FORMS: tuple[PipelineForm, ...] = get_args(PipelineForm)
DEFINITIONS = yaml.safe_load((Path(__file__).parents[1] / "equivalent_definitions.yaml").read_text("utf-8"))
SQL_STEP = "SELECT *, temperature AS value, site = 'x' AS last, device AS key FROM input"
"""Gives readings the fields that the strategies of windows and triggers use."""
sample_aggregates = st.lists(
    st.sampled_from(
        [
            count(),
            count("value"),
            sum_("value"),
            mean("value"),
            last("site", order="arrival"),
            distinct("site", exact=False, precision=14),
            quantiles("value", 0.5, 0.99, k=400),
            top(3, "site", by="value", largest=False),
            collect("id"),
        ]
    ),
    min_size=1,
    max_size=4,
)
WITH_FUNCTIONS = (
    "card_alerts",
    "card_travel",
    "click_through",
    "funnel",
    "hashtags",
    "word_count_incremental",
    "word_totals",
    "zeitgeist",
)
"""Shipped pipelines with functions in their own files."""
windows = st.one_of(event_windows, processing_windows, order_windows)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: str(definition["yaml"]["write"]))
def test_a_form_gives_the_same_plan(definition: dict[str, Any], form: PipelineForm) -> None:
    pipeline = from_document(definition["yaml"])
    if form == "sql" and "stateful" in definition["yaml"]:
        with pytest.raises(
            DefinitionError, match=r"SQL has no word for a stateful function. Write it in YAML"
        ):
            write_pipeline("stream", pipeline, form)
    else:
        assert read_form("stream", write_pipeline("stream", pipeline, form), form) == pipeline.to_plan(
            "stream"
        )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [name for name in pipeline_names() if name not in WITH_FUNCTIONS])
def test_a_shipped_pipeline_has_the_same_plan_in_each_form(name: str, form: PipelineForm) -> None:
    assert read_form(name, write_pipeline(name, load_pipeline(name), form), form) == load_plan(name)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", WITH_FUNCTIONS)
def test_a_function_of_the_own_file_is_refused_by_one_sentence(name: str, form: PipelineForm) -> None:
    with pytest.raises(DefinitionError) as raised:
        write_pipeline(name, load_pipeline(name), form)
    assert "is a Python function of the pipeline's own file. Move it to a module" in str(raised.value)


class Longest:
    """A combiner, which the forms never call."""

    partial_type, result_type, can_subtract = pa.int64(), pa.int64(), False

    def add(self, values: Any, groups: Any, count: int) -> Any: ...
    def merge(self, partials: Any, groups: Any, count: int) -> Any: ...
    def subtract(self, partials: Any, gone: Any) -> Any: ...
    def result(self, partials: Any) -> Any: ...


@pytest.mark.parametrize("form", FORMS)
def test_a_combiner_is_refused_by_one_sentence(form: PipelineForm) -> None:
    pipeline = read("sensors").aggregate(most=combine(Longest(), "site")).window(fixed("1 minute")).write("a")
    with pytest.raises(
        DefinitionError, match=r"aggregate\.most: Custom is Python code without a keyword\. Keep"
    ):
        write_pipeline("stream", pipeline, form)


@settings(max_examples=scale_examples(12), deadline=None)
@given(
    windows,
    triggers,
    modes,
    st.none() | st.integers(0, 20),
    st.sampled_from(["always", "when_changed"]),
    st.none() | st.sampled_from(["never", "when_changed", "always"]),
    sample_aggregates,
)
def test_any_window_trigger_and_aggregate_has_the_same_plan_in_each_form(
    window: Window,
    trigger: Trigger,
    mode: Any,
    lateness: int | None,
    on_time_pane: Any,
    final_pane: Any,
    aggregates: list[Any],
) -> None:
    columns = {f"column_{number}": aggregate for number, aggregate in enumerate(aggregates)}
    pipeline = (
        read("sensors")
        .sql(SQL_STEP)
        .key("key")
        .aggregate(**columns)
        .window(window)
        .trigger(
            trigger,
            lateness=None if lateness is None else lateness * 1_000,
            may_finish=True,
            on_time_pane=on_time_pane,
            final_pane=final_pane,
        )
        .accumulation(mode)
        .write("panes", mode="log")
    )
    check_forms(pipeline)


@settings(max_examples=scale_examples(6), deadline=None)
@given(conditions)
def test_any_filter_has_the_same_plan_in_each_form(condition: Predicate) -> None:
    names = sorted(predicate_fields(condition))
    columns = ", ".join(f"device AS `{name}`" for name in names)
    pipeline = read("sensors").sql(f"SELECT *, {columns} FROM input")
    filtered = add_step(pipeline, FilterStep(condition)).aggregate(n=count())
    check_forms(filtered.window(fixed("1 minute")).write("panes"))


def check_forms(pipeline: Pipeline) -> None:
    """Write a pipeline in each form, unless it is invalid in all of them, and compare the plans."""
    try:
        plan = pipeline.to_plan("stream")
    except DefinitionError:
        assume(condition=False)
    for form in FORMS:
        assert read_form("stream", write_pipeline("stream", pipeline, form), form) == plan
