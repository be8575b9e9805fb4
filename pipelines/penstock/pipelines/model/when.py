"""When panes appear, as a person says it."""

from dataclasses import dataclass

from penstock.pipelines.plan.stage import DEFAULT, FinalPane, OnTimePane
from penstock.pipelines.plan.triggers import Trigger


@dataclass(frozen=True)
class When:
    """When panes appear, and for how long they may still change."""

    trigger: Trigger = DEFAULT
    lateness: int | None = None
    may_finish: bool = False
    on_time_pane: OnTimePane = "always"
    final_pane: FinalPane | None = None
    """What is not said is `always` where a table of final panes would lose windows otherwise, and else `never`."""
