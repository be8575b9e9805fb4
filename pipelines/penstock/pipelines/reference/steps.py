"""What steps make of a record or a pane: those that are data are done here, others somebody stands for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from penstock.pipelines.plan.steps import Keep, PerRow, Select, Step
from penstock.pipelines.reference.conditions import meets

Fields = Mapping[str, Any]
Steps = Callable[[Fields], Iterable[Fields]]


def are_known(steps: Sequence[Step]) -> bool:
    """Tell whether the reference can do all of these steps itself."""
    return all(isinstance(step, Keep | Select | PerRow) for step in steps)


def done(steps: Sequence[Step], fields: Fields) -> list[Fields]:
    """Return what becomes of a row after steps that are known."""
    rows = [fields]
    for step in steps:
        rows = [made for row in rows for made in one_step(step, row)]
    return rows


def one_step(step: Step, row: Fields) -> Iterable[Fields]:
    """Return what one step makes of a row."""
    match step:
        case Keep(condition):
            return [row] if meets(row, condition) else []
        case Select(columns):
            return [{new: row.get(old) for new, old in columns}]
        case PerRow(function, returns, many):
            answer = function.resolve()(row)
            made = list(answer) if many else [answer]
            return [{column.name: each.get(column.name) for column in returns} for each in made]
        case _:
            raise TypeError(f"{step} is not known to the reference")
