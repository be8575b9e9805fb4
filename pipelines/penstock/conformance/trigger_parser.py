"""Parses the `trigger` of a case into a trigger of the plan."""

from collections.abc import Mapping
from typing import Any

from penstock.conformance.field_validation import refuse_misspelled_fields
from penstock.conformance.punctuation_parser import PUNCTUATION_FIELDS, parse_predicate
from penstock.conformance.time_units import TimeUnit
from penstock.engine.errors import TranscriptError, UnsupportedCaseError
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

TRIGGER_FIELDS: dict[str, tuple[str, ...]] = {
    "default": (),
    "after_watermark": ("early", "late"),
    "after_count": ("count", "n"),
    "after_processing_time": ("delay", "delay_ms", "duration", "duration_ms"),
    "every": ("period", "period_ms", "every", "every_ms", "interval", "interval_ms", "offset", "offset_ms"),
    "after_punctuation": PUNCTUATION_FIELDS,
    "repeatedly": ("of",),
    "or_finally": ("of", "finally"),
    "after_any": ("of", "triggers"),
    "after_all": ("of", "triggers"),
    "after_each": ("of", "triggers"),
}
TRIGGER_TYPES = tuple(TRIGGER_FIELDS)
TRIGGER_EXAMPLE = "{'type': 'after_count', 'count': 2}"


def parse_trigger(node: Mapping[str, Any] | str | None, unit: TimeUnit) -> Trigger:
    """Parse a trigger with its parts; the default trigger if there is none."""
    spec: Mapping[str, Any] = {"type": node or "default"} if not isinstance(node, Mapping) else node
    kind = spec.get("type")
    refuse_misspelled_fields(spec, ("type", *TRIGGER_FIELDS.get(str(kind), ())), f"the trigger {kind!r}")
    match kind:
        case "default":
            return Default()
        case "after_watermark":
            return AfterWatermark(
                parse_optional_trigger(spec.get("early"), unit),
                parse_optional_trigger(spec.get("late"), unit),
            )
        case "after_count":
            return AfterCount(parse_count(spec))
        case "after_processing_time":
            return AfterProcessingTime(unit.parse_field(spec, "delay", "duration"))
        case "every" | "after_processing_time_aligned":
            period = unit.parse_field(spec, "period", "every", "interval")
            return Every(period, unit.parse_optional_field(spec, "offset") % max(period, 1))
        case "after_punctuation":
            return AfterPunctuation(parse_predicate(spec))
        case "repeatedly":
            return Repeatedly(parse_trigger(require_part(spec, "of"), unit))
        case "or_finally":
            return OrFinally(
                parse_trigger(require_part(spec, "of"), unit),
                parse_trigger(require_part(spec, "finally"), unit),
            )
        case "after_any" | "after_first":
            return AfterAny(parse_parts(spec, unit))
        case "after_all":
            return AfterAll(parse_parts(spec, unit))
        case "after_each":
            return AfterEach(parse_parts(spec, unit))
        case str(kind) if kind.startswith(("early_every_", "late_every_")):
            return parse_early_or_late(kind, spec, unit)
        case str(other):
            raise UnsupportedCaseError(
                f"the contract has no trigger of type {other!r}; it has {', '.join(TRIGGER_TYPES)}"
            )
        case _:
            raise TranscriptError(
                f"a trigger is {node!r}; write an object with a type, such as {TRIGGER_EXAMPLE}"
            )


def parse_early_or_late(kind: str, node: Mapping[str, Any], unit: TimeUnit) -> Trigger:
    """Parse `early_every_count`, `late_every_processing_time` and similar fields."""
    side, _, measure = kind.partition("_every_")
    match measure:
        case "count":
            part: Trigger = AfterCount(parse_count(node))
        case "processing_time":
            part = Every(unit.parse_field(node, "period"))
        case _:
            raise UnsupportedCaseError(
                f"the contract has no trigger of type {kind!r}; it has {', '.join(TRIGGER_TYPES)}"
            )
    return AfterWatermark(early=part) if side == "early" else AfterWatermark(late=part)


def require_part(node: Mapping[str, Any], name: str) -> Mapping[str, Any] | str:
    """Return the inner trigger of a trigger; a list must have one element."""
    part = node.get(name)
    if isinstance(part, list) and len(part) == 1:
        part = part[0]
    if not isinstance(part, Mapping | str):
        raise TranscriptError(f"{node.get('type')!r} needs a trigger in `{name}`; found {part!r}")
    return part


def parse_parts(node: Mapping[str, Any], unit: TimeUnit) -> tuple[Trigger, ...]:
    """Parse the parts of a composite trigger."""
    parts = node.get("of", node.get("triggers"))
    if not isinstance(parts, list) or not all(isinstance(part, Mapping | str) for part in parts):
        raise TranscriptError(
            f"{node.get('type')!r} needs a list of triggers in `of`, such as [{TRIGGER_EXAMPLE}]; found {parts!r}"
        )
    return tuple(parse_trigger(part, unit) for part in parts)


def parse_optional_trigger(node: Mapping[str, Any] | str | None, unit: TimeUnit) -> Trigger | None:
    """Parse an optional part."""
    return None if node is None else parse_trigger(node, unit)


def parse_count(node: Mapping[str, Any]) -> int:
    """Parse a number of elements."""
    count = node.get("count", node.get("n"))
    if not isinstance(count, int):
        raise TranscriptError(f"{node.get('type')!r} needs an integer in `count`; found {count!r}")
    return count
