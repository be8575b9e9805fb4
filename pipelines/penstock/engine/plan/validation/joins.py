"""Checks of joins: their windows, accumulation and sinks."""

from penstock.engine.definition.argument_checks import require
from penstock.engine.plan.joins import Join
from penstock.engine.plan.pane_windows import windows_of_panes
from penstock.engine.plan.sinks import PaneContent
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.windows.join_window import JoinWindow


def check_join(plan: Plan, stage: Stage) -> None:
    """Refuse a join that can never match, would lose pairs, or writes to an unsuitable table."""
    if isinstance(stage.window, JoinWindow):
        check_record_join(stage, stage.window)
    if stage.join is None:
        return
    fix = "Use time windows, between(before, after) or as_of()"
    is_joinable = not stage.window.is_record_ordered or isinstance(stage.window, JoinWindow)
    require(is_joinable, "window", "an order window for a join", fix)
    are_logs = all(sink.content is not PaneContent.LATEST for sink in stage.sinks)
    fix = "Write mode='log' or mode='final': a window may have many joined rows"
    require(are_logs, "write.mode", "a table of latest values for a join", fix)
    fix = (
        "Write accumulation('retracting') or accumulation('accumulating'): "
        "a pair whose sides arrive in different panes would be lost"
    )
    require(stage.accumulation != "discarding", "accumulation", "discarding for a join", fix)
    check_window_join(plan, stage, stage.join)


def check_window_join(plan: Plan, stage: Stage, join: Join) -> None:
    """Refuse to join panes in their own windows if these windows differ."""
    if not stage.window.reuses_upstream_windows:
        return
    windows_by_input = {
        upstream.name: windows_of_panes(plan, upstream) for upstream in plan.upstream_of(stage)
    }
    left, right = windows_by_input[join.left], windows_by_input[join.right]
    problem = f"{join.left} and {join.right} have different windows, so their rows can never match"
    fix = "Give both the same windows, or join them in wider ones, as in window(fixed('1 hour'))"
    require(left == right or not left or not right, "window", problem, fix)


def check_record_join(stage: Stage, window: JoinWindow) -> None:
    """Refuse window options for interval and as-of joins, and as-of joins that never complete."""
    require(
        stage.join is not None,
        "window",
        "a join condition without a join",
        "Start with join(left, right, ...)",
    )
    fix = "Remove it: a row is emitted once, when it is final"
    require(stage.has_default_trigger, "trigger", "set for an interval or as-of join", fix)
    require(stage.final_pane == "never", "final_pane", "set for an interval or as-of join", fix)
    require(stage.accumulation == "accumulating", "accumulation", "set for an interval or as-of join", fix)
    if stage.join is not None:
        is_supported = stage.join.kind not in window.unsupported_kinds
        problem = f"{stage.join.kind} for an as-of join"
        require(is_supported, "join.how", problem, window.unsupported_kinds_fix)
