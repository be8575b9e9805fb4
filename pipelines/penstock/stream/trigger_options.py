"""Options of `Pipeline.trigger`."""

from dataclasses import dataclass
from typing import get_args

from penstock.engine.definition.argument_checks import require_one_of, require_type
from penstock.engine.plan.stages import DEFAULT_TRIGGER, FinalPanePolicy, OnTimePanePolicy
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class TriggerOptions:
    """When panes are emitted, and how long they may be corrected."""

    trigger: Trigger = DEFAULT_TRIGGER
    lateness: int | None = None
    may_finish: bool = False
    on_time_pane: OnTimePanePolicy = "always"
    final_pane: FinalPanePolicy | None = None
    """The default is `always` if a table of final panes would miss windows otherwise, and else `never`."""

    def __post_init__(self) -> None:
        require_type(self.may_finish, bool, "may_finish", "Write true or false")
        require_one_of(self.on_time_pane, get_args(OnTimePanePolicy), "on_time_pane")
        if self.final_pane is not None:
            require_one_of(self.final_pane, get_args(FinalPanePolicy), "final_pane")
