"""What must hold between a lookup and the records that it is asked for."""

from collections.abc import Iterable

from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.steps import Lookup, Step


def check_lookups(plan: Plan, stage: Stage) -> None:
    """Refuse a field that no record has, and a column that hides one; after other steps Spark tells."""
    sources = plan.read_by(stage)
    for source in sources:
        check_steps(stage.steps_of(source.name), {column.name for column in source.columns})
    if sources and not stage.prepared:
        check_steps(stage.steps, {column.name for source in sources for column in source.columns})


def check_steps(steps: Iterable[Step], known: set[str]) -> None:
    """Refuse the same of the lookups that come before any other step."""
    for step in steps:
        if not isinstance(step, Lookup):
            return
        fields = ", ".join(sorted(known))
        for name in step.on:
            require(name in known, "lookup.on", f"{name!r} is no field of a record", f"There are: {fields}")
        for column in step.columns:
            fix = "Rename it in a step before, or leave it out"
            place = f"lookup.columns.{column.name}"
            require(column.name not in known, place, "a record has a field of that name", fix)
            known.add(column.name)
