"""When in processing time: the trigger algebra, as data. What each means is the table in the contract."""

from dataclasses import dataclass
from typing import TypeAlias

from penstock.engine.plan.predicates import Predicate
from penstock.engine.plan.validation.argument_checks import (
    require,
    require_non_negative,
    require_positive,
    require_type,
)


@dataclass(frozen=True)
class AfterWatermark:
    """Once, when the watermark passes the end; with `early` or `late` it never finishes.

    With `early` and no `late`, what comes after the end is shown at each batch that brings it.
    """

    early: "Trigger | None" = None
    late: "Trigger | None" = None

    def __post_init__(self) -> None:
        for name, part in (("early", self.early), ("late", self.late)):
            if part is not None:
                _require_trigger(part, f"trigger.after_watermark.{name}")


@dataclass(frozen=True)
class AfterCount:
    """At least n elements since it began, judged at the end of a batch."""

    n: int

    def __post_init__(self) -> None:
        require_positive(self.n, "trigger.after_count", "elements")


@dataclass(frozen=True)
class AfterProcessingTime:
    """The batch clock is `delay` or more after the clock at the first element since it began."""

    delay: int

    def __post_init__(self) -> None:
        require_non_negative(self.delay, "trigger.after_processing_time")


@dataclass(frozen=True)
class Every:
    """The batch clock reached the next k * period + offset after the first element since it began."""

    period: int
    offset: int = 0

    def __post_init__(self) -> None:
        require_positive(self.period, "trigger.every")
        require_non_negative(self.offset, "trigger.every.offset")


@dataclass(frozen=True)
class AfterPunctuation:
    """An element that matches came since it began."""

    predicate: Predicate


@dataclass(frozen=True)
class AfterAny:
    """One part is ready."""

    triggers: tuple["Trigger", ...]

    def __post_init__(self) -> None:
        _require_triggers(self.triggers, "trigger.after_any")


@dataclass(frozen=True)
class AfterAll:
    """All parts are ready; a part once ready stays so."""

    triggers: tuple["Trigger", ...]

    def __post_init__(self) -> None:
        _require_triggers(self.triggers, "trigger.after_all")


@dataclass(frozen=True)
class AfterEach:
    """One part after the other; only the present part sees elements."""

    triggers: tuple["Trigger", ...]

    def __post_init__(self) -> None:
        _require_triggers(self.triggers, "trigger.after_each")


@dataclass(frozen=True)
class OrFinally:
    """As `of`, until `until` fires or `of` finishes; `until` counts across firings of `of`."""

    trigger: "Trigger"
    until: "Trigger"

    def __post_init__(self) -> None:
        _require_trigger(self.trigger, "trigger.or_finally")
        _require_trigger(self.until, "trigger.or_finally.until")


@dataclass(frozen=True)
class Repeatedly:
    """As `of`, and again from nothing whenever it finishes."""

    trigger: "Trigger"

    def __post_init__(self) -> None:
        _require_trigger(self.trigger, "trigger.repeatedly")


@dataclass(frozen=True)
class Default:
    """At the end, then at each batch that brings late elements: `Repeatedly(AfterWatermark())`."""


Trigger: TypeAlias = (
    AfterWatermark
    | AfterCount
    | AfterProcessingTime
    | Every
    | AfterPunctuation
    | AfterAny
    | AfterAll
    | AfterEach
    | OrFinally
    | Repeatedly
    | Default
)


TRIGGER_HINT = (
    "Give a trigger, as in repeatedly(after_count(1)) or after_watermark(early=every('10 seconds'))"
)


def _require_trigger(part: object, field: str) -> None:
    require_type(part, Trigger, field, TRIGGER_HINT)


def _require_triggers(triggers: tuple[object, ...], field: str) -> None:
    require(len(triggers) > 0, field, "no parts", "Name at least one trigger")
    for part in triggers:
        _require_trigger(part, field)


def can_finish(trigger: Trigger) -> bool:
    """Tell whether the trigger may come to a point after which it never fires again."""
    match trigger:
        case Repeatedly() | Default():
            return False
        case AfterWatermark(early, late):
            return early is None and late is None
        case AfterEach(triggers):
            return all(can_finish(part) for part in triggers)
        case _:
            return True


def child_triggers(trigger: Trigger) -> tuple[Trigger, ...]:
    """Return the triggers directly inside this one."""
    match trigger:
        case AfterAny(inner) | AfterAll(inner) | AfterEach(inner):
            return inner
        case Repeatedly(inner):
            return (inner,)
        case OrFinally(inner, until):
            return (inner, until)
        case AfterWatermark(early, late):
            return tuple(part for part in (early, late) if part is not None)
        case _:
            return ()


def punctuation_predicates(trigger: Trigger) -> tuple[Predicate, ...]:
    """Return the predicates that the trigger looks for, each once, in the order in which they are written."""
    predicates: dict[Predicate, None] = {}
    if isinstance(trigger, AfterPunctuation):
        predicates[trigger.predicate] = None
    for part in child_triggers(trigger):
        predicates.update(dict.fromkeys(punctuation_predicates(part)))
    return tuple(predicates)
