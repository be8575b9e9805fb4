"""Parses the `trigger` of a case into a trigger of the plan.

Its type is a keyword of YAML definitions, and its fields are the arguments of the keyword. Recorded cases name
some of them as other systems do.
"""

from collections.abc import Mapping
from inspect import Parameter, signature
from types import NoneType
from typing import Any, get_args

from penstock.conformance.field_validation import refuse_misspelled_fields
from penstock.conformance.punctuation_parser import PUNCTUATION_FIELDS, parse_predicate
from penstock.conformance.time_units import TimeUnit
from penstock.core.errors import UnknownKindError
from penstock.engine.definition.durations import Duration
from penstock.engine.definition.keyword import KeywordFunction
from penstock.engine.errors import TranscriptError, UnsupportedCaseError
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.after_punctuation import AfterPunctuation
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.every import Every
from penstock.engine.triggers.trigger import Trigger
from penstock.stream.keyword_registries import TRIGGER_KEYWORDS, find_nested_registry

TYPE_ALIASES = {"after_first": "after_any", "after_processing_time_aligned": "every"}
FIELD_NAMES = {
    "n": ("count", "n"),
    "delay": ("delay", "duration"),
    "period": ("period", "every", "interval"),
    "until": ("finally",),
    "predicate": PUNCTUATION_FIELDS,
}
"""The fields of an argument, where they are not only its name."""
TRIGGER_EXAMPLE = "{'type': 'after_count', 'count': 2}"


def parse_trigger(node: Mapping[str, Any] | str | None, unit: TimeUnit) -> Trigger:
    """Parse a trigger with its parts; the default trigger if there is none."""
    spec: Mapping[str, Any] = {"type": node or "default"} if not isinstance(node, Mapping) else node
    kind = spec.get("type")
    if not isinstance(kind, str):
        raise TranscriptError(
            f"a trigger is {node!r}; write an object with a type, such as {TRIGGER_EXAMPLE}"
        )
    if kind.startswith(("early_every_", "late_every_")):
        return parse_early_or_late(kind, spec, unit)
    function = find_trigger_function(kind)
    parameters = signature(function, eval_str=True).parameters
    known_fields = [name for parameter in parameters.values() for name in field_names(parameter)]
    refuse_misspelled_fields(spec, ("type", *known_fields), f"the trigger {kind!r}")
    if "predicate" in parameters:
        return AfterPunctuation(parse_predicate(spec))
    positional: list[Any] = []
    for parameter in parameters.values():
        if parameter.kind is Parameter.VAR_POSITIONAL:
            positional += parse_parts(spec, unit)
        else:
            positional.append(parse_argument(spec, parameter, unit))
    trigger: Trigger = function(*positional)
    return trigger


def find_trigger_function(kind: str) -> KeywordFunction:
    """Return the function of a type of triggers."""
    try:
        return TRIGGER_KEYWORDS.find_kind(TYPE_ALIASES.get(kind, kind))
    except UnknownKindError as error:
        raise unknown_type_error(kind) from error


def unknown_type_error(kind: str) -> UnsupportedCaseError:
    """Return the error about a type that the contract does not have."""
    known_kinds = ", ".join(TRIGGER_KEYWORDS.kinds_by_name)
    return UnsupportedCaseError(f"the specification has no trigger of type {kind!r}; it has {known_kinds}")


def field_names(parameter: Parameter) -> tuple[str, ...]:
    """Return the fields that may hold an argument."""
    if parameter.kind is Parameter.VAR_POSITIONAL:
        return ("of", "triggers")
    names = FIELD_NAMES.get(parameter.name, (parameter.name,))
    return (*names, *(f"{name}_ms" for name in names)) if takes_duration(parameter) else names


def parse_argument(spec: Mapping[str, Any], parameter: Parameter, unit: TimeUnit) -> Any:
    """Parse the argument of a parameter: a trigger, a duration, a number of elements or another value."""
    names = FIELD_NAMES.get(parameter.name, (parameter.name,))
    is_missing = all(spec.get(name) is None for name in field_names(parameter))
    if is_missing and parameter.default is not Parameter.empty:
        return parameter.default
    if find_nested_registry(parameter) is not None:
        return parse_trigger(require_part(spec, names[0]), unit)
    if takes_duration(parameter):
        return unit.parse_field(spec, *names)
    if parameter.name == "n":
        return parse_count(spec)
    if is_missing:
        raise TranscriptError(f"{spec.get('type')!r} needs {' or '.join(names)}; found {dict(spec)}")
    return spec[parameter.name]


def takes_duration(parameter: Parameter) -> bool:
    """Return whether a parameter takes a duration, or a duration or None."""
    return {*get_args(parameter.annotation)} - {NoneType} == {*get_args(Duration)}


def parse_early_or_late(kind: str, node: Mapping[str, Any], unit: TimeUnit) -> Trigger:
    """Parse `early_every_count`, `late_every_processing_time` and similar fields."""
    side, _, measure = kind.partition("_every_")
    match measure:
        case "count":
            part: Trigger = AfterCount(parse_count(node))
        case "processing_time":
            part = Every(unit.parse_field(node, "period"))
        case _:
            raise unknown_type_error(kind)
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


def parse_count(node: Mapping[str, Any]) -> int:
    """Parse a number of elements."""
    count = node.get("count", node.get("n"))
    if not isinstance(count, int):
        raise TranscriptError(f"{node.get('type')!r} needs an integer in `count`; found {count!r}")
    return count
