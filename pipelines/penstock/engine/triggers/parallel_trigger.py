"""The base of triggers whose parts run side by side."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.triggers.parallel_machine import ParallelMachine
from penstock.engine.triggers.trigger import Trigger, require_triggers


@dataclass(frozen=True)
class ParallelTrigger(Trigger):
    """Several triggers that see every element. It fires once, for one of them or for all."""

    requires_all: ClassVar[bool]
    location: ClassVar[str]
    """Its location in a definition, for errors."""

    triggers: tuple[Trigger, ...]

    def __post_init__(self) -> None:
        require_triggers(self.triggers, self.location)

    @abstractmethod
    def describe_condition(self) -> str:
        """Return which of its parts must be ready, as in `when all of these are ready`."""

    @override
    def describe(self) -> str:
        return f"{self.describe_condition()}: {'; '.join(part.describe() for part in self.triggers)}"

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        machines = [part.create_machine(column_names) for part in self.triggers]
        return ParallelMachine(machines, requires_all=self.requires_all)

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
        early_parts = (part.can_fire_before_end for part in self.triggers)
        return all(early_parts) if self.requires_all else any(early_parts)
