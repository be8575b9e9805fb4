"""A stateful function gets the same calls from the engine and from the reference, in either processing order."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.engine.operators import test_event_time_order, test_per_key
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.stateful_stages import property_settings, run_reference, stages
from tests.pipelines.engine.operators.test_order_windows_against_reference import run_engine

from penstock.conformance.reference import InputBatch
from penstock.engine.plan.stages import Stage

FUNCTIONS: dict[str, tuple[Callable[..., Stage], Any]] = {
    "arrival order": (test_per_key.make_stage, test_per_key.watch_records),
    "event-time order": (test_event_time_order.make_stage, test_event_time_order.watch_records),
}


@pytest.mark.parametrize("order", FUNCTIONS)
@property_settings
@given(data=st.data(), batches=histories())
def test_function_calls_equal_those_of_the_reference(
    tmp_path_factory: pytest.TempPathFactory, order: str, data: st.DataObject, batches: list[InputBatch]
) -> None:
    stage = data.draw(stages(*FUNCTIONS[order]))
    assert run_engine(stage, batches, tmp_path_factory.mktemp("state")) == run_reference(stage, batches)
