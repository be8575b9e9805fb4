"""The trigger after a number of records."""

from dataclasses import dataclass

from typing_extensions import override

from penstock.engine.definition.argument_checks import require_positive
from penstock.engine.definition.keyword import keyword
from penstock.engine.triggers.count_machine import CountMachine
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class AfterCount(Trigger):
    """Ready when at least n elements have arrived since it started; evaluated at the end of a batch."""

    n: int

    def __post_init__(self) -> None:
        require_positive(self.n, "trigger.after_count", "elements")

    @override
    def describe(self) -> str:
        return "when a record arrives" if self.n == 1 else f"when {self.n} records have arrived"

    @override
    def describe_repeated(self) -> str:
        return "whenever a record arrives" if self.n == 1 else f"whenever {self.n} more records have arrived"

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        return CountMachine(column_names.next_name("count"), self.n)

    @property
    @override
    def fires_once(self) -> bool:
        return True

    @property
    @override
    def shows_all_elements_when_repeated(self) -> bool:
        return self.n == 1


@keyword("after_count", synonyms=("count", "aftern", "elementcount"))
def after_count(n: int) -> AfterCount:
    """Fire once when at least n records have arrived.

    Args:
        n: the number of records of the window since the last firing.

    Example:
        trigger(repeatedly(after_count(100)))

    Not promised: a pane at each n-th record. A trigger is evaluated with each batch, which may have many records.
    """
    return AfterCount(n)
