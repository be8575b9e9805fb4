"""Whatever order its records are told in, a function with a memory is asked what the reference asks it."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipelines.engine.operators import test_in_time, test_remembering
from tests.pipelines.engine.operators.functions import PROPERTY, reference, stages
from tests.pipelines.engine.operators.strategies import histories
from tests.pipelines.engine.operators.test_order_windows_against_reference import engine

from penstock.conformance.reference import InputBatch
from penstock.engine.plan import Stage

FUNCTIONS: dict[str, tuple[Callable[..., Stage], Any]] = {
    "in the order of arrival": (test_remembering.stage_of, test_remembering.watch),
    "in the order of event time": (test_in_time.stage_of, test_in_time.watch),
}


@pytest.mark.parametrize("order", FUNCTIONS)
@PROPERTY
@given(data=st.data(), batches=histories())
def test_the_fold_asks_what_the_reference_asks(
    tmp_path_factory: pytest.TempPathFactory, order: str, data: st.DataObject, batches: list[InputBatch]
) -> None:
    stage = data.draw(stages(*FUNCTIONS[order]))
    assert engine(stage, batches, tmp_path_factory.mktemp("state")) == reference(stage, batches)
