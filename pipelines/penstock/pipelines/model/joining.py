"""Joins as a person writes them: `take` says which columns a joined row has, or all of both inputs are taken."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.aggregates import Members, Output
from penstock.pipelines.plan.check_names import RESERVED
from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.joins import Join, JoinKind, Taken
from penstock.pipelines.plan.steps import Types


@dataclass(frozen=True)
class Joining:
    """How two inputs are joined; `take` has pairs of a column's name and `input.field`, or is None for all."""

    how: str
    take: tuple[tuple[str, str], ...] | None = None


Known = Mapping[str, Types | None]
"""The columns of each input; None where its steps do not tell."""


def resolved(joining: Joining, inputs: Sequence[str], known: Known, key: Sequence[str]) -> Join:
    """Return the join of the plan. Columns that both inputs have are told apart by the input's name."""
    left, right = inputs
    if joining.take is not None:
        columns = tuple(taken(name, place, known) for name, place in joining.take)
    else:
        columns = tuple(everything(inputs if joining.how not in ("semi", "anti") else (left,), known, key))
    return Join(cast("JoinKind", joining.how), left, right, columns)


def members(join: Join) -> tuple[Output, ...]:
    """Return what the stage must keep for a join."""
    return tuple(
        Output(side, Members(name, join.fields_of(name)))
        for side, name in (("left", join.left), ("right", join.right))
    )


def taken(name: str, place: str, known: Known) -> Taken:
    """Return a column that was asked for as `input.field`, or as a field that one input alone has."""
    input_, dot, field = place.rpartition(".")
    if dot:
        fix = f"Write input.field, with one of: {', '.join(known)}"
        require(input_ in known, "join.take", repr(place), fix)
        return Taken(name, input_, field)
    owners = [each for each, columns in known.items() if columns is None or place in columns]
    fix = f"Say of which input, as in '{next(iter(known))}.{place}'"
    require(len(owners) == 1, "join.take", f"{place!r} in {len(owners)} inputs", fix)
    return Taken(name, owners[0], place)


def everything(inputs: Sequence[str], known: Known, key: Sequence[str]) -> list[Taken]:
    """Return every column beside the key; before what both have, or every pane has, stands the input's name."""
    found = []
    for name in inputs:
        columns = known[name]
        if columns is None:
            fix = "Name columns, as in take={'page': 'clicks.page'}"
            raise DefinitionError("join.take", f"nobody knows what columns {name} has after its steps", fix)
        found += [(name, field) for field in sorted(columns) if field not in key]
    fields = [field for _, field in found]

    def called(name: str, field: str) -> str:
        alone = fields.count(field) == 1 and field.lower() not in RESERVED
        return field if alone else f"{name}_{field}"

    return [Taken(called(name, field), name, field) for name, field in found]
