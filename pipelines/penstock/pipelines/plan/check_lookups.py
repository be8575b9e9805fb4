"""What must hold between a lookup and the records that it is asked for."""

from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.steps import Lookup


def check_lookups(plan: Plan, stage: Stage) -> None:
    """Refuse a field that no record has, and a column that hides one; after other steps Spark tells."""
    known = {column.name for source in plan.sources for column in source.columns}
    for step in stage.steps:
        if not isinstance(step, Lookup) or plan.feeding(stage):
            return
        fields = ", ".join(sorted(known))
        for name in step.on:
            require(name in known, "lookup.on", f"{name!r} is no field of a record", f"There are: {fields}")
        for column in step.columns:
            fix = "Rename it in a step before, or leave it out"
            place = f"lookup.columns.{column.name}"
            require(column.name not in known, place, "a record has a field of that name", fix)
            known.add(column.name)
