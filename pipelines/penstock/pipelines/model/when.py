"""When panes appear, as a person says it."""

from dataclasses import dataclass
from typing import get_args

from penstock.pipelines.plan.checks import of_kind, one_of
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

    def __post_init__(self) -> None:
        of_kind(self.may_finish, bool, "may_finish", "Write true or false")
        one_of(self.on_time_pane, get_args(OnTimePane), "on_time_pane")
        if self.final_pane is not None:
            one_of(self.final_pane, get_args(FinalPane), "final_pane")
