"""Checks of lookups against the columns of the records."""

from collections.abc import Iterable

from penstock.engine.definition.argument_checks import require, require_known_name
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import LookupStep, Step, TypesByColumn, infer_columns


def check_lookups(plan: Plan, stage: Stage) -> None:
    """Refuse lookup keys that do not exist and columns that do.

    After steps with unknown columns, Spark finds such errors.
    """
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
    """Check the lookups of some steps, and return the columns after these steps if they are known."""
    for step in steps:
        if isinstance(step, LookupStep) and columns is not None:
            check_lookup_columns(step, columns)
        columns = infer_columns([step], columns)
    return columns


def check_lookup_columns(step: LookupStep, record_columns: TypesByColumn) -> None:
    """Refuse lookup keys that do not exist and columns that do."""
    for name in step.on:
        problem = f"the records have no field {name!r}"
        require_known_name(name, record_columns, "lookup.on", problem, "Known fields")
    for column in step.columns:
        fix = "Rename the field in a step before, or remove the column"
        location = f"lookup.columns.{column.name}"
        require(column.name not in record_columns, location, "the records have a field of this name", fix)
