"""Event time is the record's own: what steps make of its field moves no window.

The watermark and what is late are judged by the record before any step; windows by another time could lie behind it
from the first. A function is not looked into: what it gives under the field's name is a value like any other.
"""

from penstock.engine.plan.column_types import NON_NUMBER_TYPES, base_type
from penstock.engine.plan.sources import PlanSource
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import SelectStep
from penstock.engine.plan.validation.argument_checks import require

NON_TIME_TYPES = (*NON_NUMBER_TYPES, "DATE", "FLOAT", "DOUBLE", "DECIMAL")


def check_event_time_type(source: PlanSource) -> None:
    """Refuse an event time that is no whole number, where the field is known."""
    column_type = next(
        (column.type for column in source.columns if column.name == source.event_time), "BIGINT"
    )
    problem = f"{source.event_time!r} of {source.name} is {column_type}"
    require(
        base_type(column_type) not in NON_TIME_TYPES,
        "event_time",
        problem,
        "Name a field of whole milliseconds since 1970, UTC",
    )


def check_event_time(plan: Plan, stage: Stage) -> None:
    """Refuse steps that put another field in the place of the event time."""
    for source in plan.sources_of(stage):
        check_event_time_type(source)
        replaced_fields = {
            old
            for step in (*stage.steps_of_input(source.name), *stage.steps)
            if isinstance(step, SelectStep)
            for new, old in step.columns
            if new == source.event_time != old
        }
        problem = f"{', '.join(sorted(replaced_fields))} in the place of the event time {source.event_time}"
        fix = (
            "Windows go by the record's own: say read(..., event_time='...'), or give the column another name"
        )
        require(not replaced_fields, "select", problem, fix)
