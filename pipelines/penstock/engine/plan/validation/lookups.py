"""What must hold between a lookup and the records that it is asked for."""

from collections.abc import Iterable

from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import LookupStep, Step, TypesByColumn, infer_columns
from penstock.engine.plan.validation.argument_checks import require


def check_lookups(plan: Plan, stage: Stage) -> None:
    """Refuse a field that no record has, and a column that hides one; after steps that do not tell, Spark does."""
    columns_by_source = [
        check_lookup_steps(
            stage.steps_of_input(source.name), {column.name: column.type for column in source.columns}
        )
        for source in plan.sources_of(stage)
    ]
    known_columns = [source_columns for source_columns in columns_by_source if source_columns is not None]
    if columns_by_source and len(known_columns) == len(columns_by_source):
        check_lookup_steps(
            stage.steps,
            {name: kind for source_columns in known_columns for name, kind in source_columns.items()},
        )


def check_lookup_steps(steps: Iterable[Step], columns: TypesByColumn | None) -> TypesByColumn | None:
    """Refuse the same of single steps, and return the columns after them, where they are known."""
    for step in steps:
        if isinstance(step, LookupStep) and columns is not None:
            check_lookup_columns(step, columns)
        columns = infer_columns([step], columns)
    return columns


def check_lookup_columns(step: LookupStep, record_columns: TypesByColumn) -> None:
    """Refuse a field to look up by that is not there, and columns that are there already."""
    for name in step.on:
        fix = f"There are: {', '.join(sorted(record_columns))}"
        require(name in record_columns, "lookup.on", f"{name!r} is no field of a record", fix)
    for column in step.columns:
        fix = "Rename it in a step before, or leave it out"
        location = f"lookup.columns.{column.name}"
        require(column.name not in record_columns, location, "a record has a field of that name", fix)
