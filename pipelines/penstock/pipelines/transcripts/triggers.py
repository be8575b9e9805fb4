"""The `trigger` of a case as a trigger of the plan."""

from collections.abc import Mapping
from typing import Any

from penstock.pipelines.errors import NotInContractError, TranscriptError
from penstock.pipelines.plan.triggers import (
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
from penstock.pipelines.transcripts.conditions import PUNCTUATION, predicate_of
from penstock.pipelines.transcripts.form import refuse_misspelt
from penstock.pipelines.transcripts.units import Unit

FIELDS: dict[str, tuple[str, ...]] = {
    "default": (),
    "after_watermark": ("early", "late"),
    "after_count": ("count", "n"),
    "after_processing_time": ("delay", "delay_ms", "duration", "duration_ms"),
    "every": ("period", "period_ms", "every", "every_ms", "interval", "interval_ms", "offset", "offset_ms"),
    "after_punctuation": PUNCTUATION,
    "repeatedly": ("of",),
    "or_finally": ("of", "finally"),
    "after_any": ("of", "triggers"),
    "after_all": ("of", "triggers"),
    "after_each": ("of", "triggers"),
}
WORDS = tuple(FIELDS)
EXAMPLE = "{'type': 'after_count', 'count': 2}"


def trigger_of(node: Mapping[str, Any] | str | None, unit: Unit) -> Trigger:
    """Read a trigger with its parts; without one it is the default."""
    spoken: Mapping[str, Any] = {"type": node or "default"} if not isinstance(node, Mapping) else node
    word = spoken.get("type")
    refuse_misspelt(spoken, ("type", *FIELDS.get(str(word), ())), f"the trigger {word!r}")
    match word:
        case "default":
            return Default()
        case "after_watermark":
            return AfterWatermark(maybe(spoken.get("early"), unit), maybe(spoken.get("late"), unit))
        case "after_count":
            return AfterCount(count_of(spoken))
        case "after_processing_time":
            return AfterProcessingTime(unit.field(spoken, "delay", "duration"))
        case "every" | "after_processing_time_aligned":
            period = unit.field(spoken, "period", "every", "interval")
            return Every(period, unit.optional(spoken, "offset") % max(period, 1))
        case "after_punctuation":
            return AfterPunctuation(predicate_of(spoken))
        case "repeatedly":
            return Repeatedly(trigger_of(part_of(spoken, "of"), unit))
        case "or_finally":
            return OrFinally(
                trigger_of(part_of(spoken, "of"), unit), trigger_of(part_of(spoken, "finally"), unit)
            )
        case "after_any" | "after_first":
            return AfterAny(parts_of(spoken, unit))
        case "after_all":
            return AfterAll(parts_of(spoken, unit))
        case "after_each":
            return AfterEach(parts_of(spoken, unit))
        case str(word) if word.startswith(("early_every_", "late_every_")):
            return around_the_end(word, spoken, unit)
        case str(other):
            raise NotInContractError(
                f"the contract has no trigger of type {other!r}; it has {', '.join(WORDS)}"
            )
        case _:
            raise TranscriptError(f"a trigger is {node!r}; write an object with a type, as in {EXAMPLE}")


def around_the_end(word: str, node: Mapping[str, Any], unit: Unit) -> Trigger:
    """Read `early_every_count`, `late_every_processing_time` and the like."""
    side, _, measure = word.partition("_every_")
    match measure:
        case "count":
            part: Trigger = AfterCount(count_of(node))
        case "processing_time":
            part = Every(unit.field(node, "period"))
        case _:
            raise NotInContractError(
                f"the contract has no trigger of type {word!r}; it has {', '.join(WORDS)}"
            )
    return AfterWatermark(early=part) if side == "early" else AfterWatermark(late=part)


def part_of(node: Mapping[str, Any], name: str) -> Mapping[str, Any] | str:
    """Return a trigger that stands inside another, by itself or as the one part of a list."""
    found = node.get(name)
    if isinstance(found, list) and len(found) == 1:
        found = found[0]
    if not isinstance(found, Mapping | str):
        raise TranscriptError(f"{node.get('type')!r} needs a trigger in `{name}`; found {found!r}")
    return found


def parts_of(node: Mapping[str, Any], unit: Unit) -> tuple[Trigger, ...]:
    """Read the parts of a composite."""
    of = node.get("of", node.get("triggers"))
    if not isinstance(of, list) or not all(isinstance(part, Mapping | str) for part in of):
        raise TranscriptError(
            f"{node.get('type')!r} needs a list of parts in `of`, as in [{EXAMPLE}]; found {of!r}"
        )
    return tuple(trigger_of(part, unit) for part in of)


def maybe(node: Mapping[str, Any] | str | None, unit: Unit) -> Trigger | None:
    """Read a part that may be missing."""
    return None if node is None else trigger_of(node, unit)


def count_of(node: Mapping[str, Any]) -> int:
    """Read how many elements."""
    found = node.get("count", node.get("n"))
    if not isinstance(found, int):
        raise TranscriptError(f"{node.get('type')!r} needs a whole number in `count`; found {found!r}")
    return found
