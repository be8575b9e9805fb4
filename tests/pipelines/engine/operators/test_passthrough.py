"""A stage may emit each record that passes its steps as a row, without state."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.graph_evaluation import CLICKS, run_engine, run_reference, split_inputs
from tests.pipelines.engine.operators.stage_strategies import histories

from penstock.conformance.reference import InputBatch
from penstock.engine.definition.predicates import Comparison
from penstock.engine.definition.user_functions import function_ref
from penstock.engine.errors import DefinitionError
from penstock.engine.explain import explain, render_mermaid
from penstock.engine.functions.pass_through import NoState, emit_each_record
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.sources import Column
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction, state_type
from penstock.engine.plan.steps import FilterStep, SelectStep
from penstock.engine.plan.validation.plans import validate_plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.stream import from_document, read

RETURNS = (Column("value", "BIGINT"), Column("word", "STRING"))


def make_plan(key: tuple[str, ...]) -> Plan:
    """Clicks of some value, unchanged."""
    window = StatefulFunction(
        function_ref(emit_each_record, "1"), state_type(NoState), RETURNS, vectorized=True
    )
    columns = tuple((name, name) for name in (*key, "value", "word"))
    steps = (FilterStep(Comparison("value", ">", 1)), SelectStep(columns))
    return validate_plan(
        Plan(
            "rows", (CLICKS,), (Stage("rows", ("clicks",), window, (), steps, key, sinks=(PaneLog("rows"),)),)
        )
    )


@settings(max_examples=scale_examples(30), deadline=None, suppress_health_check=list(HealthCheck))
@given(key=st.sampled_from([(), ("key",)]), batches=histories())
def test_rows_are_the_records_that_pass_the_filter_in_any_batches(
    tmp_path_factory: pytest.TempPathFactory, key: tuple[str, ...], batches: list[InputBatch]
) -> None:
    topic_batches = split_inputs(batches)
    rows_by_batch = run_engine(make_plan(key), topic_batches, tmp_path_factory.mktemp("state"))
    assert rows_by_batch == run_reference(make_plan(key), topic_batches)
    expected = [
        (*(record.fields[name] for name in key), record.fields["value"], record.fields["word"], at, at + 1)
        for batch in topic_batches
        for record in batch.records
        if record.source == "clicks" and (record.fields["value"] or 0) > 1
        for at in [record.fields["at"]]
    ]
    rows = [row[: len(key) + 4] for batch_rows in rows_by_batch for row in batch_rows["rows"]]
    assert sorted(rows, key=repr) == sorted(expected, key=repr)


LARGE_AMOUNTS = read("cards").filter("amount > 100").rows({"card": "STRING", "amount": "DOUBLE"})


def test_a_stage_of_rows_round_trips_through_yaml_and_is_explained() -> None:
    plan = LARGE_AMOUNTS.write("large", mode="log").plan
    document = {
        "name": "large",
        "read": "cards",
        "steps": [{"filter": "amount > 100"}],
        "rows": {"card": "STRING", "amount": "DOUBLE"},
        "write": {"table": "large", "mode": "log"},
    }
    assert fingerprint(from_document(document).to_plan("large")) == fingerprint(plan)
    explanation = explain(plan).as_text()
    assert "Each record as a row:" in explanation
    assert "remembers" not in explanation
    assert "each record as a row" in render_mermaid(plan)


def test_rows_need_a_log_and_existing_columns(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="Write mode='log'"):
        _ = LARGE_AMOUNTS.write("large").plan
    with pytest.raises(DefinitionError, match="there is no column 'colour'"):
        _ = read("cards").rows({"colour": "STRING"}).write("t", mode="log").plan
