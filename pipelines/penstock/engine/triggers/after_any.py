"""The trigger that is ready as soon as one of several is."""

from dataclasses import dataclass

from typing_extensions import override

from penstock.engine.definition.keyword import keyword
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.triggers.parallel_machine import ParallelMachine
from penstock.engine.triggers.trigger import Trigger, require_triggers


@dataclass(frozen=True)
class AfterAny(Trigger):
    """Ready when one of its triggers is ready."""

    triggers: tuple[Trigger, ...]

    def __post_init__(self) -> None:
        require_triggers(self.triggers, "trigger.after_any")

    @override
    def describe(self) -> str:
        return "when the first of these is ready: " + "; ".join(part.describe() for part in self.triggers)

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        machines = [part.create_machine(column_names) for part in self.triggers]
        return ParallelMachine(machines, requires_all=False)

    @property
    @override
    def parts(self) -> tuple[Trigger, ...]:
        return self.triggers

    @property
    @override
    def fires_once(self) -> bool:
        return True

    @property
    @override
    def can_fire_before_end(self) -> bool:
        return any(part.can_fire_before_end for part in self.triggers)


@keyword("after_any")
def after_any(*of: Trigger) -> AfterAny:
    """Fire when one of the triggers is ready."""
    return AfterAny(of)
