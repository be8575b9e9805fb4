"""The composite triggers."""

from collections.abc import Sequence

from penstock.conformance.reference.triggers.primitive_triggers import ReferenceAfterWatermark, ReferenceNever
from penstock.conformance.reference.triggers.trigger import (
    ArrivalCounts,
    MergedTrigger,
    ReferenceTrigger,
    ReferenceTriggerContext,
    TriggerReadiness,
    create_trigger,
)
from penstock.engine.triggers.after_all import AfterAll
from penstock.engine.triggers.after_any import AfterAny
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.after_each import AfterEach
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.or_finally import OrFinally
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.triggers.trigger import Trigger


class ReferenceCompositeTrigger(ReferenceTrigger):
    """The common part of `after_any` and `after_all`: all parts see every element, and end at the first firing."""

    def __init__(self, parts: list[ReferenceTrigger]) -> None:
        self.parts = parts

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Notify every part."""
        for part in self.parts:
            part.on_elements(arrivals)

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Merge part by part."""
        triggers = [
            (part.has_pending, part.trigger)
            for part in merged
            if isinstance(part.trigger, ReferenceCompositeTrigger)
        ]
        for index, own_part in enumerate(self.parts):
            own_part.on_merge(
                [MergedTrigger(trigger.parts[index], has_pending) for has_pending, trigger in triggers],
                context,
            )


class ReferenceAfterAny(ReferenceCompositeTrigger):
    """`after_any`."""

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Return the highest readiness of all parts."""
        return max(part.check_readiness(context) for part in self.parts)


class ReferenceAfterAll(ReferenceCompositeTrigger):
    """`after_all`. A ready part stays ready, because no part is notified of a firing before all are ready."""

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Ready if all parts are ready; at the end if one of them waited for the end."""
        part_readiness = [part.check_readiness(context) for part in self.parts]
        return TriggerReadiness.WAITING if TriggerReadiness.WAITING in part_readiness else max(part_readiness)


class ReferenceAfterEach(ReferenceTrigger):
    """`after_each`: only the current part sees elements; when it finishes, the next starts in its initial state."""

    def __init__(self, triggers: tuple[Trigger, ...]) -> None:
        self.triggers = triggers
        self.current_index = 0
        self.current = create_trigger(triggers[0])

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Notify the current part."""
        self.current.on_elements(arrivals)

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Return the readiness of the current part."""
        return self.current.check_readiness(context)

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Advance when the current part finishes; finish with the last part."""
        if not self.current.on_fire(context):
            return False
        if self.current_index + 1 == len(self.triggers):
            return True
        self.current_index += 1
        self.current = create_trigger(self.triggers[self.current_index])
        return False

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Continue from the least advanced of the merged windows."""
        triggers = [(part, part.trigger) for part in merged if isinstance(part.trigger, ReferenceAfterEach)]
        self.current_index = min(trigger.current_index for _, trigger in triggers)
        self.current = create_trigger(self.triggers[self.current_index])
        least_advanced = [
            MergedTrigger(trigger.current, part.has_pending)
            for part, trigger in triggers
            if trigger.current_index == self.current_index
        ]
        self.current.on_merge(least_advanced, context)


class ReferenceOrFinally(ReferenceTrigger):
    """`or_finally`: as `of`, until `until` fires or `of` finishes."""

    def __init__(self, main: ReferenceTrigger, until: ReferenceTrigger) -> None:
        self.main = main
        self.until = until

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Notify both parts."""
        self.main.on_elements(arrivals)
        self.until.on_elements(arrivals)

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Return the higher readiness of both parts."""
        return max(self.main.check_readiness(context), self.until.check_readiness(context))

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish if `until` was ready; else `of` fired, and `until` keeps its count."""
        if self.until.check_readiness(context) is not TriggerReadiness.WAITING:
            return True
        return self.main.on_fire(context)

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Merge each part with its counterpart."""
        triggers = [
            (part.has_pending, part.trigger)
            for part in merged
            if isinstance(part.trigger, ReferenceOrFinally)
        ]
        self.main.on_merge(
            [MergedTrigger(trigger.main, has_pending) for has_pending, trigger in triggers], context
        )
        self.until.on_merge(
            [MergedTrigger(trigger.until, has_pending) for has_pending, trigger in triggers], context
        )


class ReferenceRepeatedly(ReferenceTrigger):
    """`repeatedly`: when the trigger finishes, it restarts without counts and timers."""

    def __init__(self, definition: Trigger) -> None:
        self.definition = definition
        self.inner = create_trigger(definition)

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Notify the trigger."""
        self.inner.on_elements(arrivals)

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Return the readiness of the trigger."""
        return self.inner.check_readiness(context)

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Restart the trigger if it finished; never finish."""
        if self.inner.on_fire(context):
            self.inner = create_trigger(self.definition)
        return False

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Merge the trigger."""
        inner_parts = [
            MergedTrigger(part.trigger.inner, part.has_pending)
            for part in merged
            if isinstance(part.trigger, ReferenceRepeatedly)
        ]
        self.inner.on_merge(inner_parts, context)


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
        triggers = [
            (part.has_pending, part.trigger)
            for part in merged
            if isinstance(part.trigger, ReferenceEarlyLate)
        ]
        self.early.on_merge(
            [MergedTrigger(trigger.early, has_pending) for has_pending, trigger in triggers], context
        )
        self.late.on_merge(
            [MergedTrigger(trigger.late, has_pending) for has_pending, trigger in triggers], context
        )
        self.is_past_end = context.is_past_end


@create_trigger.register
def _create_after_watermark(trigger: AfterWatermark) -> ReferenceTrigger:
    if trigger.early is None and trigger.late is None:
        return ReferenceAfterWatermark()
    return ReferenceEarlyLate(trigger.early, AfterCount(1) if trigger.late is None else trigger.late)


@create_trigger.register
def _create_after_any(trigger: AfterAny) -> ReferenceTrigger:
    return ReferenceAfterAny([create_trigger(part) for part in trigger.triggers])


@create_trigger.register
def _create_after_all(trigger: AfterAll) -> ReferenceTrigger:
    return ReferenceAfterAll([create_trigger(part) for part in trigger.triggers])


@create_trigger.register
def _create_after_each(trigger: AfterEach) -> ReferenceTrigger:
    return ReferenceAfterEach(trigger.triggers)


@create_trigger.register
def _create_or_finally(trigger: OrFinally) -> ReferenceTrigger:
    return ReferenceOrFinally(create_trigger(trigger.trigger), create_trigger(trigger.until))


@create_trigger.register
def _create_repeatedly(trigger: Repeatedly) -> ReferenceTrigger:
    return ReferenceRepeatedly(trigger.trigger)


@create_trigger.register
def _create_default(_: Default) -> ReferenceTrigger:
    return ReferenceRepeatedly(AfterWatermark())
