"""Test support for stateful functions: stages over any key, random histories, and the reference's results."""

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from tests.examples import scale_examples
from tests.pipelines.engine.operators.test_windows_against_reference import SOURCE, make_pane_row

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.validation.plans import validate_plan

property_settings = settings(
    max_examples=scale_examples(80), deadline=None, suppress_health_check=list(HealthCheck)
)
KEYS = st.sampled_from([("key",), (), ("key", "word")])
TIMES_TO_LIVE = st.sampled_from([None, 1, 8, 30])


def stages(make_stage: Callable[..., Stage], function: Any) -> st.SearchStrategy[Stage]:
    """Stages with the function, over any key and with any time to live."""
    return st.builds(make_stage, st.just(function), KEYS, TIMES_TO_LIVE)


def run_reference(stage: Stage, batches: Sequence[InputBatch]) -> list[list[tuple[Any, ...]]]:
    """The reference's panes in each batch."""
    evaluator = Evaluator(validate_plan(Plan("plan", (SOURCE,), (stage,))))
    return [sorted(map(make_pane_row, evaluator.run(batch).panes), key=repr) for batch in batches]


def make_batch(number: int, watermark: int, *records: tuple[str, int, int]) -> InputBatch:
    """A batch of records of some keys, with its own clock."""
    records_of_batch = tuple(
        InputRecord(
            "records", 0, number * 10 + position, {"key": key, "at": time, "value": value, "word": None}
        )
        for position, (key, time, value) in enumerate(records)
    )
    return InputBatch(number, number * 10, records_of_batch, watermark=watermark)
