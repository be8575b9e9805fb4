"""The trigger after a record that matches a condition."""

from dataclasses import dataclass

from typing_extensions import override

from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.predicates import Predicate, predicate_sql
from penstock.engine.triggers.count_machine import CountMachine
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class AfterPunctuation(Trigger):
    """Ready when a matching element has arrived since it started."""

    predicate: Predicate

    @override
    def describe(self) -> str:
        return f"when a record with {predicate_sql(self.predicate)} arrives"

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        return CountMachine(column_names.next_name("punctuation"), 1, self.predicate)

    @property
    @override
    def punctuation(self) -> tuple[Predicate, ...]:
        return (self.predicate,)

    @property
    @override
    def fires_once(self) -> bool:
        return True


@keyword("after_punctuation")
def after_punctuation(predicate: str) -> AfterPunctuation:
    """Fire once when a record meets a condition.

    Args:
        predicate: the condition.

    Example:
        trigger(repeatedly(after_punctuation("kind = 'end'")))
    """
    return AfterPunctuation(parse_condition(predicate, "trigger.after_punctuation"))
