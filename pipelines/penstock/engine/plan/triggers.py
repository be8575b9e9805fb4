"""Triggers, as data: when a window emits panes. SEMANTICS.md defines each of them."""

from dataclasses import dataclass
from typing import TypeAlias

from penstock.engine.definition.argument_checks import (
    require,
    require_non_negative,
    require_positive,
    require_type,
)
from penstock.engine.definition.predicates import Predicate


@dataclass(frozen=True)
class AfterWatermark:
    """Fires once when the watermark passes the end of the window. With `early` or `late` it never finishes.

    With `early` and without `late`, each batch with late elements fires.
    """

    early: "Trigger | None" = None
    late: "Trigger | None" = None

    def __post_init__(self) -> None:
        for name, part in (("early", self.early), ("late", self.late)):
            if part is not None:
                _require_trigger(part, f"trigger.after_watermark.{name}")


@dataclass(frozen=True)
class AfterCount:
    """Ready when at least n elements have arrived since it started; evaluated at the end of a batch."""

    n: int

    def __post_init__(self) -> None:
        require_positive(self.n, "trigger.after_count", "elements")


@dataclass(frozen=True)
class AfterProcessingTime:
    """Ready when the batch clock is at least `delay` after the clock of the first element since it started."""

    delay: int

    def __post_init__(self) -> None:
        require_non_negative(self.delay, "trigger.after_processing_time")


@dataclass(frozen=True)
class Every:
    """Ready when the batch clock reaches the next k * period + offset after the first element since it started."""

    period: int
    offset: int = 0

    def __post_init__(self) -> None:
        require_positive(self.period, "trigger.every")
        require_non_negative(self.offset, "trigger.every.offset")


@dataclass(frozen=True)
class AfterPunctuation:
    """Ready when a matching element has arrived since it started."""

    predicate: Predicate


@dataclass(frozen=True)
class AfterAny:
    """Ready when one of its triggers is ready."""

    triggers: tuple["Trigger", ...]

    def __post_init__(self) -> None:
        _require_triggers(self.triggers, "trigger.after_any")


@dataclass(frozen=True)
class AfterAll:
    """Ready when all of its triggers are ready. A trigger that is ready stays ready."""

    triggers: tuple["Trigger", ...]

    def __post_init__(self) -> None:
        _require_triggers(self.triggers, "trigger.after_all")


@dataclass(frozen=True)
class AfterEach:
    """Runs one trigger after the other. Only the current trigger sees elements."""

    triggers: tuple["Trigger", ...]

    def __post_init__(self) -> None:
        _require_triggers(self.triggers, "trigger.after_each")


@dataclass(frozen=True)
class OrFinally:
    """Fires as `trigger`, until `until` fires or `trigger` finishes. `until` counts across firings of `trigger`."""

    trigger: "Trigger"
    until: "Trigger"

    def __post_init__(self) -> None:
        _require_trigger(self.trigger, "trigger.or_finally")
        _require_trigger(self.until, "trigger.or_finally.until")


@dataclass(frozen=True)
class Repeatedly:
    """Fires as `trigger`, and restarts it whenever it finishes."""

    trigger: "Trigger"

    def __post_init__(self) -> None:
        _require_trigger(self.trigger, "trigger.repeatedly")


@dataclass(frozen=True)
class Default:
    """Fires at the end of the window, then at each batch with late elements: `Repeatedly(AfterWatermark())`."""


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
    require(len(triggers) > 0, field, "no triggers", "Name at least one trigger")
    for part in triggers:
        _require_trigger(part, field)


def can_finish(trigger: Trigger) -> bool:
    """Return whether the trigger may finish, and then never fires again."""
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
    """Return the punctuation predicates of a trigger, each once, in definition order."""
    predicates: dict[Predicate, None] = {}
    if isinstance(trigger, AfterPunctuation):
        predicates[trigger.predicate] = None
    for part in child_triggers(trigger):
        predicates.update(dict.fromkeys(punctuation_predicates(part)))
    return tuple(predicates)
