"""What must hold between when panes appear and the tables that take them.

A table of final panes holds a window by the pane after which nothing comes, a table of newest values by the last
one: where no pane says that it is the last, or the last one says only what came since the one before, the table is
wrong without anybody having been told.
"""

from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.sinks import CompleteTable, FinalPanes, LatestValues
from penstock.pipelines.plan.source import Topic
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.triggers import (
    AfterAll,
    AfterAny,
    AfterEach,
    AfterWatermark,
    Default,
    OrFinally,
    Repeatedly,
    Trigger,
)
from penstock.pipelines.plan.windows import Global, SameWindows, in_order


def check_when(stage: Stage) -> None:
    """Refuse tables that would lose windows, or hold parts of them."""
    fix = "Write final_pane='always': then each window has a pane after which nothing comes"
    require(tells_the_end(stage), "final_pane", f"{stage.final_pane}, for a table of final panes", fix)
    newest = any(isinstance(sink, LatestValues | CompleteTable) for sink in stage.sinks)
    fix = "Write refine('accumulating'), or mode='log', which keeps every part"
    whole = stage.accumulation != "discarding" or shows_one_pane(stage)
    require(whole or not newest, "refine", "discarding, for a table of newest values", fix)


def check_live(plan: Plan) -> None:
    """Refuse what says nothing as long as records may come; over stored records it has its answer at their end."""
    for stage in plan.stages:
        endless = is_live(plan, stage) and lasts_for_ever(plan, stage)
        fix = "Say when, as in trigger(repeatedly(after_count(1))), or run it over stored records: `penstock run`"
        found = f"{stage.name} waits for the end of a window that has none"
        require(not endless or fires_before_the_end(stage.trigger), "trigger", found, fix)


def tells_the_end(stage: Stage) -> bool:
    """Tell whether every window's last pane says that it is final, where a table goes by that."""
    if in_order(stage.window) or not any(isinstance(sink, FinalPanes) for sink in stage.sinks):
        return True
    at_end = isinstance(stage.trigger, Default | AfterWatermark) and stage.on_time_pane == "always"
    is_last = stage.lateness == 0 or stage.trigger == AfterWatermark()
    return stage.final_pane == "always" or (at_end and is_last)


def shows_one_pane(stage: Stage) -> bool:
    """Tell whether no window shows a second pane."""
    at_the_end = stage.trigger == Default() and stage.lateness == 0
    return in_order(stage.window) or at_the_end or finishes_at_once(stage.trigger)


def finishes_at_once(trigger: Trigger) -> bool:
    """Tell whether the trigger is over when it has fired."""
    lasting = isinstance(trigger, AfterEach | OrFinally | Repeatedly | Default)
    return not lasting and (not isinstance(trigger, AfterWatermark) or trigger == AfterWatermark())


def lasts_for_ever(plan: Plan, stage: Stage) -> bool:
    """Tell whether the windows of a stage have no end."""
    same = isinstance(stage.window, SameWindows)
    return isinstance(stage.window, Global) or (
        same and any(lasts_for_ever(plan, each) for each in plan.feeding(stage))
    )


def is_live(plan: Plan, stage: Stage) -> bool:
    """Tell whether what a stage reads comes from a topic."""
    topics = any(isinstance(source.origin, Topic) for source in plan.read_by(stage))
    return topics or any(is_live(plan, each) for each in plan.feeding(stage))


def fires_before_the_end(trigger: Trigger) -> bool:
    """Tell whether the trigger can fire in a window whose end does not come."""
    match trigger:
        case Default():
            return False
        case AfterWatermark(early):
            return early is not None and fires_before_the_end(early)
        case AfterAny(of):
            return any(fires_before_the_end(part) for part in of)
        case AfterAll(of):
            return all(fires_before_the_end(part) for part in of)
        case AfterEach(of):
            return fires_before_the_end(of[0])
        case OrFinally(of, until):
            return fires_before_the_end(of) or fires_before_the_end(until)
        case Repeatedly(of):
            return fires_before_the_end(of)
        case _:
            return True
