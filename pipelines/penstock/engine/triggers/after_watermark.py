"""The trigger at the end of the window, with early and late firings."""

from dataclasses import dataclass

from typing_extensions import override

from penstock.engine.definition.keyword import keyword
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.triggers.trigger import Trigger, require_trigger
from penstock.engine.triggers.watermark_machines import EarlyLateMachine, EndOfWindowMachine, NeverMachine


@dataclass(frozen=True)
class AfterWatermark(Trigger):
    """Fires once when the watermark passes the end of the window. With `early` or `late` it never finishes.

    With `early` and without `late`, each batch with late elements fires.
    """

    early: Trigger | None = None
    late: Trigger | None = None

    def __post_init__(self) -> None:
        for name, part in (("early", self.early), ("late", self.late)):
            if part is not None:
                require_trigger(part, f"trigger.after_watermark.{name}")

    @override
    def describe(self) -> str:
        if self.fires_once:
            return "once, when the watermark passes the end of the window"
        late = self.late.describe() if self.late else "with each batch of late records"
        return f"{self._describe_early_and_on_time()}; late panes {late}"

    @override
    def describe_until_end(self) -> str:
        return self.describe() if self.fires_once else self._describe_early_and_on_time()

    def _describe_early_and_on_time(self) -> str:
        on_time = "on-time pane when the watermark passes the end of the window"
        return f"early panes {self.early.describe()}; {on_time}" if self.early else on_time

    @override
    def create_machine(self, column_names: TriggerColumnNames) -> TriggerMachine:
        if self.fires_once:
            return EndOfWindowMachine()
        name = column_names.next_name("past_end")
        early = Repeatedly(self.early).create_machine(column_names) if self.early else NeverMachine()
        return EarlyLateMachine(
            name, early, Repeatedly(self.late or AfterCount(1)).create_machine(column_names)
        )

    @property
    @override
    def parts(self) -> tuple[Trigger, ...]:
        return tuple(part for part in (self.early, self.late) if part is not None)

    @property
    @override
    def can_finish(self) -> bool:
        return self.fires_once

    @property
    @override
    def fires_once(self) -> bool:
        return not self.parts

    @property
    @override
    def fires_at_end(self) -> bool:
        return True

    @property
    @override
    def can_fire_before_end(self) -> bool:
        return self.early is not None and self.early.can_fire_before_end

    @property
    @override
    def shows_all_elements(self) -> bool:
        return self.late is None

    @property
    @override
    def shows_all_elements_when_repeated(self) -> bool:
        return self.fires_once


@keyword(
    "after_watermark", synonyms=("watermark", "onwatermark", "atwatermark", "eventtime", "eventtimetrigger")
)
def after_watermark(early: Trigger | None = None, late: Trigger | None = None) -> AfterWatermark:
    """Fire when the watermark passes the end of the window; also before that with `early`, after it with `late`.

    Without `early` and `late` it fires once and finishes. With `early` alone, late records fire immediately.

    Args:
        early: fires again and again before the end.
        late: fires again and again after it, until the allowed lateness is over.

    Example:
        trigger(after_watermark(early=every("10 seconds"), late=after_count(1)), lateness="1 hour")

    Not promised: an on-time pane of a window without new records. See `on_time_pane` of `trigger`.
    """
    return AfterWatermark(early, late)
