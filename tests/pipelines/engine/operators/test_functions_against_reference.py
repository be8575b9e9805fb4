"""A stateful function gets the same calls from the engine and from the reference, in either processing order."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.engine.operators import test_event_time_order, test_per_key
from tests.pipelines.engine.operators.stage_strategies import histories
from tests.pipelines.engine.operators.stateful_stages import PROPERTY, reference, stages
from tests.pipelines.engine.operators.test_order_windows_against_reference import engine

from penstock.conformance.reference import InputBatch
from penstock.engine.plan.stages import Stage

FUNCTIONS: dict[str, tuple[Callable[..., Stage], Any]] = {
    "in the order of arrival": (test_per_key.stage_of, test_per_key.watch),
    "in the order of event time": (test_event_time_order.stage_of, test_event_time_order.watch),
}


@pytest.mark.parametrize("order", FUNCTIONS)
@PROPERTY
@given(data=st.data(), batches=histories())
def test_the_engine_makes_the_calls_of_the_reference(
    tmp_path_factory: pytest.TempPathFactory, order: str, data: st.DataObject, batches: list[InputBatch]
) -> None:
    stage = data.draw(stages(*FUNCTIONS[order]))
    assert engine(stage, batches, tmp_path_factory.mktemp("state")) == reference(stage, batches)
