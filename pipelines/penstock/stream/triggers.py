"""When: triggers in the words of a person; what each means is the table in the contract."""

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
from penstock.stream.condition_parser import parse_condition
from penstock.stream.durations import Duration, to_milliseconds


def default() -> Default:
    """Show at the end of the window, then at each batch that brings late records."""
    return Default()


def after_watermark(early: Trigger | None = None, late: Trigger | None = None) -> AfterWatermark:
    """Show at the end of the window, before it as `early` says and after it as `late` says.

    With `early` alone, late records are shown with the batch that brings them.
    """
    return AfterWatermark(early, late)


def after_count(n: int) -> AfterCount:
    """Show when at least n records came."""
    return AfterCount(n)


def after_processing_time(delay: Duration) -> AfterProcessingTime:
    """Show this long after the first record came, by the batch clock."""
    return AfterProcessingTime(to_milliseconds(delay, "trigger.after_processing_time"))


def every(period: Duration, offset: Duration = 0) -> Every:
    """Show at the next multiple of the period after the first record came, by the batch clock."""
    return Every(to_milliseconds(period, "trigger.every"), to_milliseconds(offset, "trigger.every.offset"))


def after_punctuation(predicate: str) -> AfterPunctuation:
    """Show when a record matches a condition, as in `after_punctuation("kind = 'end'")`."""
    return AfterPunctuation(parse_condition(predicate, "trigger.after_punctuation"))


def after_any(*of: Trigger) -> AfterAny:
    """Show when one of them would."""
    return AfterAny(of)


def after_all(*of: Trigger) -> AfterAll:
    """Show when each of them has become ready."""
    return AfterAll(of)


def after_each(*of: Trigger) -> AfterEach:
    """Show by one after the other."""
    return AfterEach(of)


def or_finally(of: Trigger, until: Trigger) -> OrFinally:
    """Show as the first says, until the second is ready."""
    return OrFinally(of, until)


def repeatedly(of: Trigger) -> Repeatedly:
    """Begin the trigger again whenever it finishes."""
    return Repeatedly(of)
