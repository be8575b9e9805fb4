"""The triggers that count elements or wait for the batch clock."""

from collections.abc import Callable, Sequence

from penstock.conformance.reference.triggers.trigger import (
    ArrivalCounts,
    MergedTrigger,
    ReferenceTrigger,
    ReferenceTriggerContext,
    TriggerReadiness,
    create_trigger,
    triggers_of_type,
)
from penstock.engine.definition.predicates import Predicate
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.after_processing_time import AfterProcessingTime
from penstock.engine.triggers.after_punctuation import AfterPunctuation
from penstock.engine.triggers.every import Every


class ReferenceAfterCount(ReferenceTrigger):
    """`after_count` and `after_punctuation`: ready after a number of (matching) elements."""

    def __init__(self, required_count: int, predicate: Predicate | None = None) -> None:
        self.required_count = required_count
        self.predicate = predicate
        self.count = 0

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Count the batch as a whole."""
        self.count += arrivals.elements if self.predicate is None else arrivals.matching[self.predicate]

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Ready if enough elements arrived."""
        return TriggerReadiness.READY if self.count >= self.required_count else TriggerReadiness.WAITING

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish; the count is dropped."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """Add the counts."""
        self.count = sum(trigger.count for trigger in triggers_of_type(ReferenceAfterCount, merged))


class ReferenceProcessingTimer(ReferenceTrigger):
    """`after_processing_time` and `every`: the first element sets a timer on the clock.

    `compute_due_time` returns when a timer that is set now is due.
    """

    def __init__(self, compute_due_time: Callable[[int], int]) -> None:
        self.compute_due_time = compute_due_time
        self.due_at: int | None = None

    def on_elements(self, arrivals: ArrivalCounts) -> None:
        """Set the timer, if there is none and elements arrived."""
        if self.due_at is None and arrivals.elements > 0:
            self.due_at = self.compute_due_time(arrivals.clock)

    def check_readiness(self, context: ReferenceTriggerContext) -> TriggerReadiness:
        """Ready if the clock has reached the timer."""
        return (
            TriggerReadiness.READY
            if self.due_at is not None and context.clock >= self.due_at
            else TriggerReadiness.WAITING
        )

    def on_fire(self, context: ReferenceTriggerContext) -> bool:
        """Finish."""
        return True

    def on_merge(self, merged: Sequence[MergedTrigger], context: ReferenceTriggerContext) -> None:
        """The earliest timer with unemitted elements wins."""
        pending_triggers = triggers_of_type(
            ReferenceProcessingTimer, [part for part in merged if part.has_pending]
        )
        self.due_at = min(
            (trigger.due_at for trigger in pending_triggers if trigger.due_at is not None), default=None
        )


@create_trigger.register
def _create_after_count(trigger: AfterCount) -> ReferenceTrigger:
    return ReferenceAfterCount(trigger.n)


@create_trigger.register
def _create_after_punctuation(trigger: AfterPunctuation) -> ReferenceTrigger:
    return ReferenceAfterCount(1, trigger.predicate)


@create_trigger.register
def _create_after_processing_time(trigger: AfterProcessingTime) -> ReferenceTrigger:
    return ReferenceProcessingTimer(lambda clock: clock + trigger.delay)


@create_trigger.register
def _create_every(trigger: Every) -> ReferenceTrigger:
    return ReferenceProcessingTimer(
        lambda clock: clock + trigger.period - (clock - trigger.offset) % trigger.period
    )
