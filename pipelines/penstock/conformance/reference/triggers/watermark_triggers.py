"""The triggers that wait for the watermark."""

from collections.abc import Sequence

from penstock.conformance.reference.triggers.composite_triggers import ReferenceRepeatedly
from penstock.conformance.reference.triggers.trigger import (
    ArrivalCounts,
    MergedTrigger,
    ReferenceTrigger,
    ReferenceTriggerContext,
    TriggerReadiness,
    create_trigger,
    merged_parts,
)
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.trigger import Trigger


class ReferenceAfterWatermark(ReferenceTrigger):
    """`after_watermark`: ready from the end on."""

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Ignore elements."""

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Ready if W >= end."""
        return TriggerReadiness.AT_END if context.is_past_end else TriggerReadiness.WAITING

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """There is no state to merge."""


class ReferenceNever(ReferenceTrigger):
    """The default of an undefined early trigger."""

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Ignore elements."""

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Never ready."""
        return TriggerReadiness.WAITING

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Never finish."""
        return False

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """There is no state to merge."""


class ReferenceEarlyLate(ReferenceTrigger):
    """`after_watermark(early, late)`: before the end, once at the end, and after it."""

    def __init__(self, early: Trigger | None, late: Trigger) -> None:
        self.early_and_late = (early, late)
        self.is_past_end = False
        self.reset()

    def reset(self) -> None:
        """Reset the early and the late trigger."""
        early, late = self.early_and_late
        self.early: ReferenceTrigger = ReferenceNever() if early is None else ReferenceRepeatedly(early)
        self.late: ReferenceTrigger = ReferenceRepeatedly(late)

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Notify the part that is active."""
        (self.late if self.is_past_end else self.early).on_elements(arrivals)

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Return the readiness of the active part; at the end, ready once."""
        if self.is_past_end:
            return self.late.check_readiness(context)
        return TriggerReadiness.AT_END if context.is_past_end else self.early.check_readiness(context)

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Pass the end and drop all counts and timers; never finish."""
        if self.is_past_end:
            self.late.on_fire(context)
        elif context.is_past_end:
            self.is_past_end = True
            self.reset()
        else:
            self.early.on_fire(context)
        return False

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Merge early with early and late with late; the end is passed if the watermark is at or after it."""
        self.early.on_merge(merged_parts(ReferenceEarlyLate, merged, lambda trigger: trigger.early), context)
        self.late.on_merge(merged_parts(ReferenceEarlyLate, merged, lambda trigger: trigger.late), context)
        self.is_past_end = context.is_past_end


@create_trigger.register
def _create_after_watermark(trigger: AfterWatermark) -> ReferenceTrigger:
    if trigger.early is None and trigger.late is None:
        return ReferenceAfterWatermark()
    return ReferenceEarlyLate(trigger.early, AfterCount(1) if trigger.late is None else trigger.late)


@create_trigger.register
def _create_default(_: Default) -> ReferenceTrigger:
    return ReferenceRepeatedly(AfterWatermark())
