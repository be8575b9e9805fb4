"""Event time is the record's own: what steps make of its field moves no window.

The watermark and what is late are judged by the record before any step; windows by another time could lie behind it
from the first. A function is not looked into: what it gives under the field's name is a value like any other.
"""

from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.source import Source
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.steps import Select
from penstock.pipelines.plan.types import NO_NUMBERS, head_of

NO_TIMES = (*NO_NUMBERS, "DATE", "FLOAT", "DOUBLE", "DECIMAL")


def check_kind(source: Source) -> None:
    """Refuse an event time that is no whole number, where the field is known."""
    kind = next((each.type for each in source.columns if each.name == source.event_time), "BIGINT")
    found = f"{source.event_time!r} of {source.name} is {kind}"
    require(
        head_of(kind) not in NO_TIMES,
        "event_time",
        found,
        "Name a field of whole milliseconds since 1970, UTC",
    )


def check_time(plan: Plan, stage: Stage) -> None:
    """Refuse steps that put another field in the place of the event time."""
    for source in plan.read_by(stage):
        check_kind(source)
        renamed = {
            old
            for step in (*stage.steps_of(source.name), *stage.steps)
            if isinstance(step, Select)
            for new, old in step.columns
            if new == source.event_time != old
        }
        found = f"{', '.join(sorted(renamed))} in the place of the event time {source.event_time}"
        fix = (
            "Windows go by the record's own: say read(..., event_time='...'), or give the column another name"
        )
        require(not renamed, "select", found, fix)
