"""The default trigger: at the end of the window, then for late records."""

from dataclasses import dataclass

from typing_extensions import override

from penstock.engine.definition.keyword import keyword
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class Default(Trigger):
    """Fires at the end of the window, then at each batch with late elements: `Repeatedly(AfterWatermark())`."""

    @override
    def describe(self) -> str:
        return f"{self.describe_until_end()}, then with each batch of late records"

    @override
    def describe_until_end(self) -> str:
        return "when the watermark passes the end of the window"

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        return Repeatedly(AfterWatermark()).create_machine(column_names)

    @property
    @override
    def can_finish(self) -> bool:
        return False

    @property
    @override
    def fires_at_end(self) -> bool:
        return True

    @property
    @override
    def can_fire_before_end(self) -> bool:
        return False

    @property
    @override
    def shows_all_elements(self) -> bool:
        return True


@keyword("default")
def default() -> Default:
    """Fire at the end of the window, and then with each batch of late records.

    Example:
        trigger(default(), lateness="1 hour")
    """
    return Default()
