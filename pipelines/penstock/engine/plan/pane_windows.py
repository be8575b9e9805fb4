"""Which windows the panes of a stage have: its own, or those of the stages that it goes on with."""

from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.windows import SameWindows, Window


def windows_of_panes(plan: Plan, stage: Stage) -> set[Window]:
    """Return the windows that the panes of a stage have; nothing where only who publishes them knows."""
    match stage.window:
        case SameWindows():
            return {
                window for upstream in plan.upstream_of(stage) for window in windows_of_panes(plan, upstream)
            }
        case ChangelogWindows():
            return set()
        case window:
            return {window}
