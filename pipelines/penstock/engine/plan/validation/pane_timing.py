"""Checks of triggers and accumulation against the tables that a stage writes.

A table of final panes needs a final pane for each window. A table of latest values needs panes with the whole
value. Otherwise the tables would be wrong without an error.
"""

from penstock.engine.definition.argument_checks import require
from penstock.engine.plan.sinks import PaneContent
from penstock.engine.plan.sources import TopicOrigin
from penstock.engine.plan.stages import Plan, Stage


def check_pane_timing(stage: Stage) -> None:
    """Refuse tables that would miss windows or hold partial values."""
    fix = "Write final_pane='always', so that each window has a final pane"
    require(has_final_pane(stage), "final_pane", f"{stage.final_pane} for a table of final panes", fix)
    has_value_table = any(sink.content is PaneContent.LATEST for sink in stage.sinks)
    fix = "Write accumulation('accumulating'), or mode='log', which keeps every pane"
    has_whole_values = stage.accumulation != "discarding" or has_at_most_one_pane(stage)
    require(
        has_whole_values or not has_value_table,
        "accumulation",
        "discarding for a table of latest values",
        fix,
    )


def check_live_stages(plan: Plan) -> None:
    """Refuse live stages that would never emit a pane. Over a bounded input they emit at its end."""
    for stage in plan.stages:
        never_ends = reads_live_topic(plan, stage) and has_unbounded_windows(plan, stage)
        fix = "Add trigger(repeatedly(after_count(1))), or run it over bounded input with `penstock run`"
        problem = f"{stage.name} waits for the end of a window that never ends"
        require(not never_ends or stage.trigger.can_fire_before_end, "trigger", problem, fix)


def has_final_pane(stage: Stage) -> bool:
    """Return whether every window has a final pane, if a table needs it."""
    if stage.window.is_record_ordered or not any(sink.content is PaneContent.FINAL for sink in stage.sinks):
        return True
    has_on_time_pane = stage.trigger.fires_at_end and stage.on_time_pane == "always"
    is_on_time_pane_last = stage.lateness == 0 or stage.trigger.fires_once
    return stage.final_pane == "always" or (has_on_time_pane and is_on_time_pane_last)


def has_at_most_one_pane(stage: Stage) -> bool:
    """Return whether each window emits at most one pane."""
    fires_at_end_only = stage.has_default_trigger and stage.lateness == 0
    return stage.window.is_record_ordered or fires_at_end_only or stage.trigger.fires_once


def has_unbounded_windows(plan: Plan, stage: Stage) -> bool:
    """Return whether the windows of a stage never end."""
    return stage.window.never_ends or (
        stage.window.reuses_upstream_windows
        and any(has_unbounded_windows(plan, upstream) for upstream in plan.upstream_of(stage))
    )


def reads_live_topic(plan: Plan, stage: Stage) -> bool:
    """Return whether the input of a stage comes from a topic."""
    has_topic_source = any(isinstance(source.origin, TopicOrigin) for source in plan.sources_of(stage))
    return has_topic_source or any(reads_live_topic(plan, upstream) for upstream in plan.upstream_of(stage))
