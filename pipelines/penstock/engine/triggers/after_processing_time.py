"""The trigger a fixed time after the first record."""

from dataclasses import dataclass

from typing_extensions import override

from penstock.engine.definition.argument_checks import require_non_negative
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_duration
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.triggers.processing_time_machine import ProcessingTimeMachine
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class AfterProcessingTime(Trigger):
    """Ready when the batch clock is at least `delay` after the clock of the first element since it started."""

    delay: int

    def __post_init__(self) -> None:
        require_non_negative(self.delay, "trigger.after_processing_time")

    @override
    def describe(self) -> str:
        return f"{format_duration(self.delay)} after the first record, on the batch clock"

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        return ProcessingTimeMachine(column_names.next_name("timer"), self.delay)

    @property
    @override
    def fires_once(self) -> bool:
        return True


@keyword("after_processing_time", synonyms=("processingtime", "afterdelay", "delay", "timeout"))
def after_processing_time(delay: Duration) -> AfterProcessingTime:
    """Fire once, a time after the first record of the window, by the clock of the batches.

    Args:
        delay: the time.

    Example:
        trigger(repeatedly(after_processing_time("30 seconds")))
    """
    return AfterProcessingTime(to_milliseconds(delay, "trigger.after_processing_time"))
