"""Checks between a stage and its upstream stages.

Panes are read as changes: an insert adds an element, a retract removes one. A pane that replaces an earlier one
without a retraction would be counted twice. A stage over retracted elements must be able to subtract them.
"""

from penstock.engine.definition.argument_checks import require
from penstock.engine.plan.correction_time import correction_time_ms
from penstock.engine.plan.pane_windows import windows_of_panes
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import ArrowStep, FilterStep, RowFunctionStep, SelectStep, step_kind
from penstock.engine.windows.join_window import JoinWindow


def check_inputs_uniform(plan: Plan, stage: Stage) -> None:
    """Refuse a stage that reads both records and panes."""
    upstream_count = len(plan.upstream_of(stage))
    fix = "Read the topics in another stage, and read that stage here"
    require(upstream_count in (0, len(stage.inputs)), "inputs", "both topics and stages", fix)


def check_downstream_stage(plan: Plan, stage: Stage) -> None:
    """Refuse options that a stage over other stages does not support."""
    for upstream in plan.upstream_of(stage):
        check_upstream(stage, upstream)
    check_accumulation(plan, stage)
    check_pane_windows(plan, stage)
    check_pane_triggers(stage)
    for step in (*stage.steps, *(step for upstream in stage.input_steps for step in upstream.steps)):
        fix = "Use filter, select, map, flat_map or arrow: panes are not processed by Spark"
        is_supported = isinstance(step, ArrowStep | FilterStep | SelectStep | RowFunctionStep)
        require(is_supported, "steps", f"a {step_kind(step)} step over panes", fix)
    for output in stage.aggregates:
        fix = "Write order='event_time': panes have no arrival order"
        has_defined_order = not output.aggregate.needs_arrival_order
        require(has_defined_order, f"aggregate.{output.name}", "needs the arrival order", fix)


def check_upstream(stage: Stage, upstream: Stage) -> None:
    """Refuse panes that would be counted twice, and changes that would be late."""
    shows_changes = upstream.accumulation != "accumulating" or has_single_pane(upstream)
    fix = f"Write accumulation('retracting') or accumulation('discarding') in {upstream.name}"
    problem = f"{upstream.name} emits a window again without retracting the old value"
    require(shows_changes, "accumulation", problem, fix)
    fix = f"Set at least {correction_time_ms(upstream)} ms, because {upstream.name} corrects its windows that long"
    require(
        stage.lateness >= correction_time_ms(upstream),
        "lateness",
        f"{stage.lateness} ms in {stage.name}",
        fix,
    )


def has_single_pane(stage: Stage) -> bool:
    """Return whether every window emits exactly one pane."""
    if stage.window.is_record_ordered:
        return True
    fires_once = stage.has_default_trigger and stage.lateness == 0 and stage.final_pane == "never"
    return fires_once and stage.window.merge_gap is None


def check_accumulation(plan: Plan, stage: Stage) -> None:
    """Refuse a stage that cannot retract its results."""
    can_retract_results = stage.accumulation == "retracting" or not plan.reads_retractions(stage)
    fix = "Write accumulation('retracting'): its input may be retracted, and so may its results"
    require(
        can_retract_results,
        "accumulation",
        f"{stage.accumulation} in {stage.name}, over panes that are retracted",
        fix,
    )


def check_pane_windows(plan: Plan, stage: Stage) -> None:
    """Refuse windows that cannot hold panes or retract them."""
    window = stage.window
    fix = "Join panes in their own windows: remove window(...)"
    require(not isinstance(window, JoinWindow), "window", "an interval or as-of join over panes", fix)
    fix = "Use a time window: the panes of a batch have no order"
    require(not window.is_record_ordered, "window", "an order window over panes", fix)
    fix = "Use other windows: a session does not shrink when an element is retracted"
    may_shrink = window.merge_gap is not None and plan.reads_retractions(stage)
    require(not may_shrink, "window", "sessions over panes that are retracted", fix)
    fix = "Use processing-time windows in the first stage: panes have no processing time of their own"
    require(not window.uses_processing_time, "window", "processing-time windows over panes", fix)
    is_wide = window.never_ends or window.reuses_upstream_windows
    for upstream in plan.upstream_of(stage):
        has_global_window = any(read_window.never_ends for read_window in windows_of_panes(plan, upstream))
        fix = "Use global_window() or same_windows()"
        require(is_wide or not has_global_window, "window", f"narrower than those of {upstream.name}", fix)
        problem = f"windows of {upstream.name} may end behind the watermark"
        fix = "Use global_window(): then no pane of that stage is late"
        require(upstream.window.is_event_time_bound or window.never_ends, "window", problem, fix)


def check_pane_triggers(stage: Stage) -> None:
    """Refuse triggers that would lose changes or that depend on records."""
    fix = "Wrap the trigger in repeatedly(...), so that later changes are not lost"
    require(not stage.trigger.can_finish, "trigger", f"it can finish, in {stage.name}", fix)
    fix = "Use the punctuation in the first stage, and repeatedly(after_count(1)) here"
    require(not stage.trigger.punctuation, "trigger", f"punctuation in {stage.name}, over panes", fix)
