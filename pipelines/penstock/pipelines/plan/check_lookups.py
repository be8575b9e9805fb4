"""What must hold between a lookup and the records that it is asked for."""

from collections.abc import Iterable

from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.steps import Lookup, Step, Types, columns_after


def check_lookups(plan: Plan, stage: Stage) -> None:
    """Refuse a field that no record has, and a column that hides one; after steps that do not tell, Spark does."""
    found = [
        check_steps(stage.steps_of(source.name), {column.name: column.type for column in source.columns})
        for source in plan.read_by(stage)
    ]
    told = [known for known in found if known is not None]
    if found and len(told) == len(found):
        check_steps(stage.steps, {name: kind for known in told for name, kind in known.items()})


def check_steps(steps: Iterable[Step], known: Types | None) -> Types | None:
    """Refuse the same of single steps, and return the columns after them, where they are known."""
    for step in steps:
        if isinstance(step, Lookup) and known is not None:
            check_lookup(step, known)
        known = columns_after([step], known)
    return known


def check_lookup(step: Lookup, known: Types) -> None:
    """Refuse a field to look up by that is not there, and columns that are there already."""
    for name in step.on:
        fix = f"There are: {', '.join(sorted(known))}"
        require(name in known, "lookup.on", f"{name!r} is no field of a record", fix)
    for column in step.columns:
        fix = "Rename it in a step before, or leave it out"
        place = f"lookup.columns.{column.name}"
        require(column.name not in known, place, "a record has a field of that name", fix)
