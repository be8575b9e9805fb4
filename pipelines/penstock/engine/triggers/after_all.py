"""The trigger that is ready once all of several are."""

from dataclasses import dataclass

from typing_extensions import override

from penstock.engine.definition.keyword import keyword
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.triggers.parallel_machine import ParallelMachine
from penstock.engine.triggers.trigger import Trigger, require_triggers


@dataclass(frozen=True)
class AfterAll(Trigger):
    """Ready when all of its triggers are ready. A trigger that is ready stays ready."""

    triggers: tuple[Trigger, ...]

    def __post_init__(self) -> None:
        require_triggers(self.triggers, "trigger.after_all")

    @override
    def describe(self) -> str:
        return "when all of these are ready: " + "; ".join(part.describe() for part in self.triggers)

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        machines = [part.create_machine(column_names) for part in self.triggers]
        return ParallelMachine(machines, requires_all=True)

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
        return all(part.can_fire_before_end for part in self.triggers)


@keyword("after_all")
def after_all(*of: Trigger) -> AfterAll:
    """Fire when all of the triggers are ready."""
    return AfterAll(of)
