"""What must hold between a stage and the stages whose panes it reads.

Panes are read as changes: an insert brings an element, a retract takes one back. So a pane that stands for one
before it, and does not take it back, would be counted twice; and whatever depends on an element that is gone must
be able to forget it.
"""

from penstock.pipelines.plan.aggregates import needs_arrival_order
from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.own_windows import windows_of
from penstock.pipelines.plan.pairing import AsOf, Between
from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.remembering import Remembering
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.steps import Keep, OverArrow, PerRow, Select
from penstock.pipelines.plan.timeliness import corrects_for, goes_by_event_time
from penstock.pipelines.plan.triggers import Default, can_finish, punctuations
from penstock.pipelines.plan.windows import (
    Global,
    SameWindows,
    Sessions,
    SlidingOrder,
    Tumbling,
    by_processing_time,
    in_order,
)


def check_alike(plan: Plan, stage: Stage) -> None:
    """Refuse a stage that reads records and panes at once."""
    feeding = len(plan.feeding(stage))
    fix = "Read topics in a stage of their own, and that stage here"
    require(feeding in (0, len(stage.inputs)), "inputs", "both topics and stages", fix)


def check_later(plan: Plan, stage: Stage) -> None:
    """Refuse what a stage over other stages cannot do."""
    for each in plan.feeding(stage):
        check_fed_by(stage, each)
    check_refinement(plan, stage)
    check_window(plan, stage)
    check_moments(stage)
    for step in (*stage.steps, *(step for each in stage.prepared for step in each.steps)):
        fix = "Write filter, select, map or flat_map, or go over Arrow: panes do not go through Spark again"
        able = isinstance(step, OverArrow | Keep | Select | PerRow)
        require(able, "steps", f"a {type(step).__name__} step over panes", fix)
    for output in stage.aggregates:
        fix = "Write order='event_time': panes have no order of arrival"
        ordered = not needs_arrival_order(output.of)
        require(ordered, f"aggregate.{output.name}", "needs the order of arrival", fix)


def check_fed_by(stage: Stage, feeding: Stage) -> None:
    """Refuse panes that would be counted twice, and changes that would come too late."""
    told = feeding.accumulation != "accumulating" or shows_once(feeding)
    fix = f"Write refine('retracting') or refine('discarding') in {feeding.name}"
    found = f"{feeding.name} shows a window again without taking back what it showed"
    require(told, "refine", found, fix)
    fix = f"Allow at least the {corrects_for(feeding)} ms for which {feeding.name} corrects its windows"
    require(stage.lateness >= corrects_for(feeding), "lateness", f"{stage.lateness} ms in {stage.name}", fix)


def shows_once(stage: Stage) -> bool:
    """Tell whether every window shows one pane and no more."""
    if in_order(stage.window):
        return True
    once = stage.trigger == Default() and stage.lateness == 0 and stage.final_pane == "never"
    return once and not isinstance(stage.window, Sessions)


def check_refinement(plan: Plan, stage: Stage) -> None:
    """Refuse a stage that could not say that a result is gone."""
    able = stage.accumulation == "retracting" or not plan.changes(stage)
    fix = "Write refine('retracting'): what it reads may be taken back, and a result with it"
    require(able, "refine", f"{stage.accumulation} in {stage.name}, over panes that are taken back", fix)


def check_window(plan: Plan, stage: Stage) -> None:
    """Refuse windows that panes cannot be put into, or could not be taken out of."""
    match stage.window:
        case Between() | AsOf():
            fix = "Join panes in the windows that they have: leave window(...) out"
            require(condition=False, field="window", found="near records, over panes", fix=fix)
        case Tumbling() | SlidingOrder() | Remembering() | Relayed():
            fix = "Choose a window of time: panes of one batch have no order among them"
            require(condition=False, field="window", found="what goes by order, over panes", fix=fix)
        case Sessions():
            fix = "Choose windows that do not grow: a session does not shrink when an element is taken back"
            require(not plan.changes(stage), "window", "sessions over panes that are taken back", fix)
    fix = "Leave it to the first stage: panes come when batches do, and say nothing of the clock"
    require(not by_processing_time(stage.window), "window", "windows of processing time over panes", fix)
    wide = isinstance(stage.window, Global | SameWindows)
    for each in plan.feeding(stage):
        endless = any(isinstance(window, Global) for window in windows_of(plan, each))
        fix = "Choose global_window() or same_windows()"
        require(wide or not endless, "window", f"narrower than those of {each.name}", fix)
        timely = goes_by_event_time(each)
        found = f"windows of {each.name} may end behind the watermark"
        fix = "Choose global_window(): then no pane of that stage is too late"
        require(timely or isinstance(stage.window, Global), "window", found, fix)


def check_moments(stage: Stage) -> None:
    """Refuse triggers that would lose changes, or that look at records."""
    fix = "Wrap the trigger in repeatedly(...): a change that comes later must still be taken"
    require(not can_finish(stage.trigger), "trigger", f"it can finish, in {stage.name}", fix)
    fix = "Let the first stage look for it, and this one show what comes: repeatedly(after_count(1))"
    require(not punctuations(stage.trigger), "trigger", f"punctuation in {stage.name}, over panes", fix)
