"""What must hold for a join: where its partners may meet, how its rows are shown, and where they go."""

from penstock.engine.plan.join_windows import AsOf
from penstock.engine.plan.joins import Join
from penstock.engine.plan.pane_windows import windows_of_panes
from penstock.engine.plan.sinks import FinalPanes, PaneLog
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.triggers import Default
from penstock.engine.plan.validation.argument_checks import require
from penstock.engine.plan.windows import JoinWindow, SameWindows, is_record_ordered


def check_join(plan: Plan, stage: Stage) -> None:
    """Refuse a join whose partners never meet, whose pairs would get lost, or whose rows have no place."""
    if isinstance(stage.window, JoinWindow):
        check_record_join(stage)
    if stage.join is None:
        return
    fix = "Choose windows of time, between(before, after) or as_of()"
    is_joinable = not is_record_ordered(stage.window) or isinstance(stage.window, JoinWindow)
    require(is_joinable, "window", "what goes by order, for a join", fix)
    are_logs = all(isinstance(sink, PaneLog | FinalPanes) for sink in stage.sinks)
    fix = "Write mode='log' or mode='final': a window has any number of joined rows"
    require(are_logs, "write.mode", "a table of newest values for a join", fix)
    fix = (
        "Write accumulation('retracting') or accumulation('accumulating'): "
        "a pair whose sides arrive in different panes would be lost"
    )
    require(stage.accumulation != "discarding", "accumulation", "discarding, for a join", fix)
    check_window_join(plan, stage, stage.join)


def check_window_join(plan: Plan, stage: Stage, join: Join) -> None:
    """Refuse to join panes in windows of their own that are cut in two ways."""
    if not isinstance(stage.window, SameWindows):
        return
    windows_by_input = {
        upstream.name: windows_of_panes(plan, upstream) for upstream in plan.upstream_of(stage)
    }
    left, right = windows_by_input[join.left], windows_by_input[join.right]
    problem = (
        f"{join.left} and {join.right} have other windows, so that no row of one would meet one of the other"
    )
    fix = "Give both the same windows, or join them in wider ones, as in window(fixed('1 hour'))"
    require(left == right or not left or not right, "window", problem, fix)


def check_record_join(stage: Stage) -> None:
    """Refuse what only windows have, and an as-of join that would have to wait for ever."""
    require(stage.join is not None, "window", "partners without a join", "Begin with join(left, right, ...)")
    fix = "Leave it out: a row is shown once, when it is sure"
    require(stage.trigger == Default(), "trigger", "given for a join of near records", fix)
    require(stage.final_pane == "never", "final_pane", "given for a join of near records", fix)
    require(stage.accumulation == "accumulating", "accumulation", "given for a join of near records", fix)
    if isinstance(stage.window, AsOf) and stage.join is not None:
        fix = "Write inner, left, semi or anti: a version that nobody asked for stays good for the next"
        require(stage.join.kind not in ("right", "full"), "join.how", f"{stage.join.kind}, as of a time", fix)
