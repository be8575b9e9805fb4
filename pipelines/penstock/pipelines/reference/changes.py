"""Panes of one stage as the elements of another: an insert brings one, a retract takes it back."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from penstock.pipelines.plan.remembering import OUTPUT, Remembering
from penstock.pipelines.plan.stage import Stage
from penstock.pipelines.reference.answers import Pane
from penstock.pipelines.reference.numbers import canonical, rank
from penstock.pipelines.reference.records import END, Element
from penstock.pipelines.reference.steps import Steps, done


def elements_of(stage: Stage, feeding: Stage, panes: Iterable[Pane], steps: Steps) -> Iterator[Element]:
    """Yield what a stage finds in the panes of one that it reads, after its steps."""
    for pane in panes:
        if pane.restates or not pane.records or goes_elsewhere(feeding, pane):
            continue
        shown = {
            **dict(zip(feeding.key, pane.key, strict=True)),
            **dict(pane.values),
            "window_start": pane.start,
            "window_end": pane.end,
        }
        own = done(stage.steps_of(feeding.name), shown)
        for fields in (made for each in own for made in steps(each)):
            yield Element(
                key=canonical(tuple(fields.get(name) for name in stage.key)),
                time=last_instant(pane),
                # A pane has no address: those of one time stand in the order of their values.
                address=(feeding.name, 0, in_order(fields)),
                fields=canonical_fields(fields),
                window=(pane.start, pane.end),
                taken_back=pane.kind == "retract",
            )


def goes_elsewhere(stage: Stage, pane: Pane) -> bool:
    """Tell whether a row of a function goes to another output than its own."""
    parted = isinstance(stage.window, Remembering) and stage.window.outputs
    return bool(parted and dict(pane.values)[OUTPUT] is not None)


def last_instant(pane: Pane) -> int:
    """Return the time of an element; where its window has no end, only such windows come after, and it is 0."""
    return 0 if pane.end == END else int(pane.end) - 1


def canonical_fields(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return fields of which equal ones are found equal."""
    return {name: canonical(value) for name, value in fields.items()}


def in_order(fields: Mapping[str, Any]) -> Any:
    """Return what elements of one time are ordered by."""
    return tuple((value is not None, value is not None and rank(value)) for value in fields.values())
