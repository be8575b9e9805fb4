"""The triggers that combine other triggers."""

from collections.abc import Sequence

from penstock.conformance.reference.triggers.trigger import (
    ArrivalCounts,
    MergedTrigger,
    ReferenceTrigger,
    ReferenceTriggerContext,
    TriggerReadiness,
    create_trigger,
    merged_parts,
)
from penstock.engine.triggers.after_all import AfterAll
from penstock.engine.triggers.after_any import AfterAny
from penstock.engine.triggers.after_each import AfterEach
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
        for index, own_part in enumerate(self.parts):
            same_parts = [
                MergedTrigger(window.trigger.parts[index], window.has_pending)
                for window in merged
                if isinstance(window.trigger, ReferenceCompositeTrigger)
            ]
            own_part.on_merge(same_parts, context)


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
        self.main.on_merge(merged_parts(ReferenceOrFinally, merged, lambda trigger: trigger.main), context)
        self.until.on_merge(merged_parts(ReferenceOrFinally, merged, lambda trigger: trigger.until), context)


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
        self.inner.on_merge(merged_parts(ReferenceRepeatedly, merged, lambda trigger: trigger.inner), context)


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
