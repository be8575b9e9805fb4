"""The windows of a stage's panes: its own, or those of its upstream stages."""

from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.windows.window import Window


def windows_of_panes(plan: Plan, stage: Stage) -> set[Window]:
    """Return the windows of a stage's panes, or an empty set if only the publishing stream knows them."""
    if stage.window.reuses_upstream_windows:
        return {window for upstream in plan.upstream_of(stage) for window in windows_of_panes(plan, upstream)}
    return set() if isinstance(stage.window, ChangelogWindows) else {stage.window}
