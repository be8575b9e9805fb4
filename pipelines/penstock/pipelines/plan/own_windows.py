"""Which windows the panes of a stage have: its own, or those of the stages that it goes on with."""

from penstock.pipelines.plan.relaying import Relayed
from penstock.pipelines.plan.stage import Plan, Stage
from penstock.pipelines.plan.windows import SameWindows, Window


def windows_of(plan: Plan, stage: Stage) -> set[Window]:
    """Return the windows that the panes of a stage have; nothing where only who publishes them knows."""
    match stage.window:
        case SameWindows():
            return {window for each in plan.feeding(stage) for window in windows_of(plan, each)}
        case Relayed():
            return set()
        case window:
            return {window}
