"""The trigger at multiples of a period of the batch clock."""

from dataclasses import dataclass

from typing_extensions import override

from penstock.engine.definition.argument_checks import require_non_negative, require_positive
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import format_duration, format_offset
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.triggers.processing_time_machine import ProcessingTimeMachine
from penstock.engine.triggers.trigger import Trigger


@dataclass(frozen=True)
class Every(Trigger):
    """Ready when the batch clock reaches the next k * period + offset after the first element since it started."""

    period: int
    offset: int = 0

    def __post_init__(self) -> None:
        require_positive(self.period, "trigger.every")
        require_non_negative(self.offset, "trigger.every.offset")

    @override
    def describe(self) -> str:
        rhythm = f"every {format_duration(self.period)} on the batch clock{format_offset(self.offset)}"
        return f"{rhythm}, if new records have arrived"

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        return ProcessingTimeMachine(column_names.next_name("timer"), self.offset, self.period)

    @property
    @override
    def fires_once(self) -> bool:
        return True


@keyword(
    "every",
    synonyms=("interval", "continuous", "periodically", "aftersynchronizedprocessingtime"),
    duration_hint="{every: {}}",
)
def every(period: Duration, offset: Duration = 0) -> Every:
    """Fire once, at the next multiple of a period after a record, by the clock of the batches.

    `early` and `late` of `after_watermark` repeat it. Elsewhere, write repeatedly(every("10 seconds")).

    Args:
        period: the time between two multiples.
        offset: shifts the multiples.

    Example:
        trigger(after_watermark(early=every("10 seconds")))
    """
    return Every(to_milliseconds(period, "trigger.every"), to_milliseconds(offset, "trigger.every.offset"))
