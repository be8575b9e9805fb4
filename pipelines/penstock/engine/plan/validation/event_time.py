"""Checks of the event time: it is the record's own, and steps do not change it.

The watermark and lateness use the record before any step, so windows by another time could be late from the start.
User functions are not checked: a value that they return under the name of the event time is an ordinary value.
"""

from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.sql_type_names import NON_NUMBER_TYPES, base_type
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import SelectStep

NON_TIME_TYPES = (*NON_NUMBER_TYPES, "DATE", "FLOAT", "DOUBLE", "DECIMAL")


def check_event_time_type(source: PlanSource) -> None:
    """Refuse an event time field that is known not to be an integer."""
    column_type = next(
        (column.type for column in source.columns if column.name == source.event_time), "BIGINT"
    )
    problem = f"{source.event_time!r} of {source.name} is {column_type}"
    require(
        base_type(column_type) not in NON_TIME_TYPES,
        "event_time",
        problem,
        "Name a field with integer milliseconds since 1970, UTC",
    )


def check_event_time(plan: Plan, stage: Stage) -> None:
    """Refuse steps that replace the event time by another field."""
    for source in plan.sources_of(stage):
        check_event_time_type(source)
        replaced_fields = {
            old
            for step in (*stage.steps_of_input(source.name), *stage.steps)
            if isinstance(step, SelectStep)
            for new, old in step.columns
            if new == source.event_time != old
        }
        problem = f"{', '.join(sorted(replaced_fields))} replaces the event time {source.event_time}"
        fix = "Set read(..., event_time='...') instead, or rename the column"
        require(not replaced_fields, "select", problem, fix)
