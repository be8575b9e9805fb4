"""Converts the panes of one stage to elements of another: inserts and retractions."""

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
    """Yield the elements that a stage makes of the panes of an upstream stage, after its steps."""
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
                # A pane has no address; panes of one time are ordered by their values.
                address=(upstream.name, 0, value_sort_key(fields)),
                fields=canonicalize_fields(fields),
                window=(pane.start, pane.end),
                is_retraction=pane.kind == "retract",
            )


def is_side_output(upstream: Stage, pane: Pane) -> bool:
    """Tell whether a row of a function belongs to a side output."""
    has_outputs = isinstance(upstream.window, StatefulFunction) and upstream.window.outputs
    return bool(has_outputs and dict(pane.values)[SIDE_OUTPUT_COLUMN] is not None)


def pane_event_time(pane: Pane) -> int:
    """Return the event time of an element; 0 if the window has no end."""
    return 0 if pane.end == MAX_TIMESTAMP else int(pane.end) - 1


def canonicalize_fields(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields in a form in which equal fields compare equal."""
    return {name: canonicalize(value) for name, value in fields.items()}


def value_sort_key(fields: Mapping[str, Any]) -> Any:
    """Return the sort key of elements with the same time."""
    return tuple((value is not None, value is not None and sort_key(value)) for value in fields.values())
