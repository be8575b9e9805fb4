"""Panes of one stage as the elements of another: an insert brings one, a retract takes it back."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.conformance.reference.input_records import MAX_TIMESTAMP, StageElement
from penstock.conformance.reference.number_semantics import canonicalize, sort_key
from penstock.conformance.reference.output_rows import Pane
from penstock.conformance.reference.steps import StepFunction, apply_steps
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import SIDE_OUTPUT_COLUMN, StatefulFunction


def elements_from_panes(
    stage: Stage, upstream: Stage, panes: Iterable[Pane], steps: StepFunction
) -> Iterator[StageElement]:
    """Yield what a stage finds in the panes of one that it reads, after its steps."""
    for pane in panes:
        if pane.is_restatement or not pane.records or is_side_output(upstream, pane):
            continue
        pane_fields = {
            **dict(zip(upstream.key, pane.key, strict=True)),
            **dict(pane.values),
            "window_start": pane.start,
            "window_end": pane.end,
        }
        input_rows = apply_steps(stage.steps_of_input(upstream.name), pane_fields)
        for fields in (output_row for input_row in input_rows for output_row in steps(input_row)):
            yield StageElement(
                key=canonicalize(tuple(fields.get(name) for name in stage.key)),
                time=pane_event_time(pane),
                # A pane has no address: those of one time stand in the order of their values.
                address=(upstream.name, 0, value_sort_key(fields)),
                fields=canonicalize_fields(fields),
                window=(pane.start, pane.end),
                is_retraction=pane.kind == "retract",
            )


def is_side_output(upstream: Stage, pane: Pane) -> bool:
    """Tell whether a row of a function goes to another output than its own."""
    has_outputs = isinstance(upstream.window, StatefulFunction) and upstream.window.outputs
    return bool(has_outputs and dict(pane.values)[SIDE_OUTPUT_COLUMN] is not None)


def pane_event_time(pane: Pane) -> int:
    """Return the time of an element; where its window has no end, only such windows come after, and it is 0."""
    return 0 if pane.end == MAX_TIMESTAMP else int(pane.end) - 1


def canonicalize_fields(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return fields of which equal ones are found equal."""
    return {name: canonicalize(value) for name, value in fields.items()}


def value_sort_key(fields: Mapping[str, Any]) -> Any:
    """Return what elements of one time are ordered by."""
    return tuple((value is not None, value is not None and sort_key(value)) for value in fields.values())
