"""What must hold between a stage and the stages whose panes it reads.

Panes are read as changes: an insert brings an element, a retract takes one back. So a pane that stands for one
before it, and does not take it back, would be counted twice; and whatever depends on an element that is gone must
be able to forget it.
"""

from penstock.engine.plan.aggregates import needs_arrival_order
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.correction_time import correction_time_ms, is_event_time_bound
from penstock.engine.plan.join_windows import AsOf, Between
from penstock.engine.plan.pane_windows import windows_of_panes
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import ArrowStep, FilterStep, RowFunctionStep, SelectStep, step_kind
from penstock.engine.plan.triggers import Default, can_finish, punctuation_predicates
from penstock.engine.plan.validation.argument_checks import require
from penstock.engine.plan.windows import (
    Global,
    SameWindows,
    Sessions,
    SlidingOrder,
    Tumbling,
    is_processing_time,
    is_record_ordered,
)


def check_inputs_uniform(plan: Plan, stage: Stage) -> None:
    """Refuse a stage that reads records and panes at once."""
    upstream_count = len(plan.upstream_of(stage))
    fix = "Read topics in a stage of their own, and that stage here"
    require(upstream_count in (0, len(stage.inputs)), "inputs", "both topics and stages", fix)


def check_downstream_stage(plan: Plan, stage: Stage) -> None:
    """Refuse what a stage over other stages cannot do."""
    for upstream in plan.upstream_of(stage):
        check_upstream(stage, upstream)
    check_accumulation(plan, stage)
    check_pane_windows(plan, stage)
    check_pane_triggers(stage)
    for step in (*stage.steps, *(step for upstream in stage.input_steps for step in upstream.steps)):
        fix = "Write filter, select, map or flat_map, or go over Arrow: panes do not go through Spark again"
        is_supported = isinstance(step, ArrowStep | FilterStep | SelectStep | RowFunctionStep)
        require(is_supported, "steps", f"a {step_kind(step)} step over panes", fix)
    for output in stage.aggregates:
        fix = "Write order='event_time': panes have no order of arrival"
        has_defined_order = not needs_arrival_order(output.aggregate)
        require(has_defined_order, f"aggregate.{output.name}", "needs the order of arrival", fix)


def check_upstream(stage: Stage, upstream: Stage) -> None:
    """Refuse panes that would be counted twice, and changes that would come too late."""
    shows_changes = upstream.accumulation != "accumulating" or has_single_pane(upstream)
    fix = f"Write accumulation('retracting') or accumulation('discarding') in {upstream.name}"
    problem = f"{upstream.name} shows a window again without taking back what it showed"
    require(shows_changes, "accumulation", problem, fix)
    fix = (
        f"Allow at least the {correction_time_ms(upstream)} ms for which {upstream.name} corrects its windows"
    )
    require(
        stage.lateness >= correction_time_ms(upstream),
        "lateness",
        f"{stage.lateness} ms in {stage.name}",
        fix,
    )


def has_single_pane(stage: Stage) -> bool:
    """Tell whether every window shows one pane and no more."""
    if is_record_ordered(stage.window):
        return True
    fires_once = stage.trigger == Default() and stage.lateness == 0 and stage.final_pane == "never"
    return fires_once and not isinstance(stage.window, Sessions)


def check_accumulation(plan: Plan, stage: Stage) -> None:
    """Refuse a stage that could not say that a result is gone."""
    can_retract_results = stage.accumulation == "retracting" or not plan.reads_retractions(stage)
    fix = "Write accumulation('retracting'): what it reads may be taken back, and a result with it"
    require(
        can_retract_results,
        "accumulation",
        f"{stage.accumulation} in {stage.name}, over panes that are taken back",
        fix,
    )


def check_pane_windows(plan: Plan, stage: Stage) -> None:
    """Refuse windows that panes cannot be put into, or could not be taken out of."""
    match stage.window:
        case Between() | AsOf():
            fix = "Join panes in the windows that they have: leave window(...) out"
            require(condition=False, field="window", problem="near records, over panes", fix=fix)
        case Tumbling() | SlidingOrder() | StatefulFunction() | ChangelogWindows():
            fix = "Choose a window of time: panes of one batch have no order among them"
            require(condition=False, field="window", problem="what goes by order, over panes", fix=fix)
        case Sessions():
            fix = "Choose windows that do not grow: a session does not shrink when an element is taken back"
            require(
                not plan.reads_retractions(stage), "window", "sessions over panes that are taken back", fix
            )
    fix = "Leave it to the first stage: panes come when batches do, and say nothing of the clock"
    require(not is_processing_time(stage.window), "window", "windows of processing time over panes", fix)
    is_wide = isinstance(stage.window, Global | SameWindows)
    for upstream in plan.upstream_of(stage):
        has_global_window = any(isinstance(window, Global) for window in windows_of_panes(plan, upstream))
        fix = "Choose global_window() or same_windows()"
        require(is_wide or not has_global_window, "window", f"narrower than those of {upstream.name}", fix)
        is_event_time = is_event_time_bound(upstream)
        problem = f"windows of {upstream.name} may end behind the watermark"
        fix = "Choose global_window(): then no pane of that stage is too late"
        require(is_event_time or isinstance(stage.window, Global), "window", problem, fix)


def check_pane_triggers(stage: Stage) -> None:
    """Refuse triggers that would lose changes, or that look at records."""
    fix = "Wrap the trigger in repeatedly(...): a change that comes later must still be taken"
    require(not can_finish(stage.trigger), "trigger", f"it can finish, in {stage.name}", fix)
    fix = "Let the first stage look for it, and this one show what comes: repeatedly(after_count(1))"
    require(
        not punctuation_predicates(stage.trigger), "trigger", f"punctuation in {stage.name}, over panes", fix
    )
