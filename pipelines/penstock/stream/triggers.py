"""Triggers of the public API: when a window emits panes. SEMANTICS.md defines each of them."""

from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.definition.durations import Duration, to_milliseconds
from penstock.engine.definition.keyword import keyword
from penstock.engine.plan.triggers import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterPunctuation,
    AfterWatermark,
    Default,
    Every,
    OrFinally,
    Repeatedly,
    Trigger,
)


@keyword("default")
def default() -> Default:
    """Fire at the end of the window, then at each batch with late records."""
    return Default()


@keyword("after_watermark")
def after_watermark(early: Trigger | None = None, late: Trigger | None = None) -> AfterWatermark:
    """Fire when the watermark passes the end of the window, before it by `early`, and after it by `late`.

    With `early` and without `late`, each batch with late records fires.
    """
    return AfterWatermark(early, late)


@keyword("after_count")
def after_count(n: int) -> AfterCount:
    """Fire when at least n records have arrived."""
    return AfterCount(n)


@keyword("after_processing_time")
def after_processing_time(delay: Duration) -> AfterProcessingTime:
    """Fire this long after the first record, on the batch clock."""
    return AfterProcessingTime(to_milliseconds(delay, "trigger.after_processing_time"))


@keyword("every")
def every(period: Duration, offset: Duration = 0) -> Every:
    """Fire at the next multiple of the period after the first record, on the batch clock."""
    return Every(to_milliseconds(period, "trigger.every"), to_milliseconds(offset, "trigger.every.offset"))


@keyword("after_punctuation")
def after_punctuation(predicate: str) -> AfterPunctuation:
    """Fire when a record matches a condition, as in `after_punctuation("kind = 'end'")`."""
    return AfterPunctuation(parse_condition(predicate, "trigger.after_punctuation"))


@keyword("after_any")
def after_any(*of: Trigger) -> AfterAny:
    """Fire when one of the triggers is ready."""
    return AfterAny(of)


@keyword("after_all")
def after_all(*of: Trigger) -> AfterAll:
    """Fire when all of the triggers are ready."""
    return AfterAll(of)


@keyword("after_each")
def after_each(*of: Trigger) -> AfterEach:
    """Run one trigger after the other."""
    return AfterEach(of)


@keyword("or_finally")
def or_finally(of: Trigger, until: Trigger) -> OrFinally:
    """Fire as the first trigger, until the second one fires."""
    return OrFinally(of, until)


@keyword("repeatedly")
def repeatedly(of: Trigger) -> Repeatedly:
    """Restart the trigger whenever it finishes."""
    return Repeatedly(of)
