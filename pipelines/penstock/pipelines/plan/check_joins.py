"""What must hold for a join: where its partners may meet, how its rows are shown, and where they go."""

from penstock.pipelines.plan.checks import require
from penstock.pipelines.plan.joins import Join
from penstock.pipelines.plan.own_windows import windows_of
from penstock.pipelines.plan.pairing import AsOf
from penstock.pipelines.plan.sinks import FinalPanes, PaneLog
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.triggers import Default
from penstock.pipelines.plan.windows import PairWindow, SameWindows, in_order


def check_join(plan: Plan, stage: Stage) -> None:
    """Refuse a join whose partners never meet, whose pairs would get lost, or whose rows have no place."""
    if isinstance(stage.window, PairWindow):
        check_pairs(stage)
    if stage.join is None:
        return
    fix = "Choose windows of time, between(before, after) or as_of()"
    able = not in_order(stage.window) or isinstance(stage.window, PairWindow)
    require(able, "window", "what goes by order, for a join", fix)
    logs = all(isinstance(sink, PaneLog | FinalPanes) for sink in stage.sinks)
    fix = "Write mode='log' or mode='final': a window has any number of joined rows"
    require(logs, "write.mode", "a table of newest values for a join", fix)
    fix = (
        "Write refine('retracting') or refine('accumulating'): a pair whose halves come apart would get lost"
    )
    require(stage.accumulation != "discarding", "refine", "discarding, for a join", fix)
    check_meeting(plan, stage, stage.join)


def check_meeting(plan: Plan, stage: Stage, join: Join) -> None:
    """Refuse to join panes in windows of their own that are cut in two ways."""
    if not isinstance(stage.window, SameWindows):
        return
    of = {each.name: windows_of(plan, each) for each in plan.feeding(stage)}
    left, right = of[join.left], of[join.right]
    found = (
        f"{join.left} and {join.right} have other windows, so that no row of one would meet one of the other"
    )
    fix = "Give both the same windows, or join them in wider ones, as in window(fixed('1 hour'))"
    require(left == right or not left or not right, "window", found, fix)


def check_pairs(stage: Stage) -> None:
    """Refuse what only windows have, and an as-of join that would have to wait for ever."""
    require(stage.join is not None, "window", "partners without a join", "Begin with join(left, right, ...)")
    fix = "Leave it out: a row is shown once, when it is sure"
    require(stage.trigger == Default(), "trigger", "given for a join of near records", fix)
    require(stage.final_pane == "never", "final_pane", "given for a join of near records", fix)
    require(stage.accumulation == "accumulating", "refine", "given for a join of near records", fix)
    if isinstance(stage.window, AsOf) and stage.join is not None:
        fix = "Write inner, left, semi or anti: a version that nobody asked for stays good for the next"
        require(stage.join.kind not in ("right", "full"), "join.how", f"{stage.join.kind}, as of a time", fix)
