"""Parses the `window` of a case into a window of the plan."""

from collections.abc import Mapping
from inspect import signature
from typing import Any

from penstock.conformance.field_validation import invalid_field_error, refuse_misspelled_fields
from penstock.conformance.punctuation_parser import PUNCTUATION_FIELDS, parse_predicate
from penstock.conformance.time_units import TimeUnit
from penstock.conformance.trigger_parser import field_names, parse_argument
from penstock.core.errors import UnknownKindError
from penstock.core.kind_registry import KindRegistry
from penstock.engine.definition.keyword import KeywordFunction
from penstock.engine.errors import TranscriptError, UnsupportedCaseError
from penstock.engine.windows.calendar import Calendar, CalendarUnit
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.delta_policy import DeltaPolicy
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.order_policy import ClosePolicy, EvictionPolicy, OrderPolicy, TriggerPolicy
from penstock.engine.windows.punctuation_policy import PunctuationPolicy
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.time_policy import TimePolicy
from penstock.engine.windows.time_window import TimeDomain, TimeWindow
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window
from penstock.stream.keyword_registries import POLICY_KEYWORDS, WINDOW_KEYWORDS

CALENDAR_UNITS: dict[str, CalendarUnit] = {"days": "day", "weeks": "week", "months": "month"}

WINDOW_TYPES = (
    *("fixed", "sliding", "sessions", "calendar", "global"),
    *("tumbling", "moving", "count", "delta", "punctuation", "time"),
)
WINDOW_FIELDS = (
    *("type", "size", "size_ms", "offset", "offset_ms", "time", "gap", "gap_ms"),
    *("period", "period_ms", "slide", "slide_ms", "every", "every_ms"),
    *("unit", "zone", "time_zone", "close", "keep", "show", "n", "count"),
    *(
        "field",
        "by",
        "delta",
        "threshold",
        "duration",
        "duration_ms",
        "elapsed",
        "elapsed_ms",
        *PUNCTUATION_FIELDS,
    ),
)
"""The fields of each window type."""


def parse_window(node: Mapping[str, Any] | str, unit: TimeUnit) -> Window:
    """Parse a window; refuse unsupported types by name."""
    spec: Mapping[str, Any] = {"type": node} if isinstance(node, str) else node
    if not isinstance(spec, Mapping):
        raise TranscriptError(
            f"`window` is {spec!r}; write an object with a type, such as {{'type': 'global'}}"
        )
    function = find_added_keyword(spec.get("type"))
    if function is not None:
        added_window: Window = parse_added_kind(function, spec, unit)
        return added_window
    refuse_misspelled_fields(spec, WINDOW_FIELDS, "`window`")
    match spec.get("type"):
        case "fixed" | "tumbling" if "close" not in spec:
            size = unit.parse_field(spec, "size")
            return Fixed(
                size,
                normalize_offset(unit.parse_optional_field(spec, "offset"), size),
                parse_time_domain(spec),
            )
        case "sliding" | "hopping":
            period = unit.parse_field(spec, "period", "slide", "every")
            return Sliding(
                unit.parse_field(spec, "size"),
                period,
                normalize_offset(unit.parse_optional_field(spec, "offset"), period),
                parse_time_domain(spec),
            )
        case "sessions" | "session":
            return Sessions(unit.parse_field(spec, "gap"))
        case "global":
            return Global()
        case "calendar":
            return Calendar(spec.get("unit", "day"), spec.get("zone", spec.get("time_zone", "UTC")))
        case "days" | "weeks" | "months" as calendar_word:
            return Calendar(CALENDAR_UNITS[calendar_word], spec.get("zone", "UTC"))
        case "tumbling":
            return Tumbling(parse_close_policy(require_policy(spec, "close"), unit))
        case "moving":
            return SlidingOrder(
                parse_policy(require_policy(spec, "keep"), unit, EvictionPolicy),
                parse_policy(require_policy(spec, "show"), unit, TriggerPolicy),
            )
        case "count" | "delta" | "punctuation" | "time":
            return Tumbling(parse_close_policy(spec, unit))
        case str(other):
            raise UnsupportedCaseError(
                f"the specification has no windows of type {other!r}; it has {', '.join(WINDOW_TYPES)}"
            )
        case other:
            raise invalid_field_error("`window.type`", other, f"one of {', '.join(WINDOW_TYPES)}")


def find_added_keyword(kind: object) -> KeywordFunction | None:
    """Return the keyword of time windows that the specification has no fields for, or None."""
    if not isinstance(kind, str) or kind in WINDOW_TYPES:
        return None
    return find_keyword_of(kind, WINDOW_KEYWORDS, TimeWindow)


def find_keyword_of(
    kind: str, registry: KindRegistry[KeywordFunction], base: type[Any]
) -> KeywordFunction | None:
    """Return the keyword of this name if it returns what derives from a base."""
    try:
        function = registry.find_kind(kind)
    except UnknownKindError:
        return None
    returned = signature(function, eval_str=True).return_annotation
    return function if isinstance(returned, type) and issubclass(returned, base) else None


def parse_added_kind(function: KeywordFunction, spec: Mapping[str, Any], unit: TimeUnit) -> Any:
    """Parse a window or policy whose fields are the arguments of its keyword."""
    parameters = signature(function, eval_str=True).parameters
    known_fields = [name for parameter in parameters.values() for name in field_names(parameter)]
    refuse_misspelled_fields(spec, ("type", *known_fields), f"the type {spec['type']!r}")
    return function(*(parse_argument(spec, parameter, unit) for parameter in parameters.values()))


def normalize_offset(offset: int, period: int) -> int:
    """Return the offset within one period; the window validates the period."""
    return offset % period if period > 0 else 0


def parse_time_domain(node: Mapping[str, Any]) -> TimeDomain:
    """Return the time domain of the window."""
    match node.get("time", "event"):
        case "event":
            return "event"
        case "processing":
            return "processing"
        case other:
            raise invalid_field_error("`window.time`", other, "event or processing")


def require_policy(node: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a policy of a window."""
    policy = node.get(name)
    if not isinstance(policy, Mapping):
        raise TranscriptError(f"{node.get('type')!r} needs a policy in `{name}`; found {policy!r}")
    return policy


def parse_close_policy(node: Mapping[str, Any], unit: TimeUnit) -> Any:
    """Parse the close policy of an order window."""
    match node.get("type"):
        case "punctuation":
            return PunctuationPolicy(parse_predicate(node))
        case _:
            return parse_policy(node, unit, ClosePolicy)


def parse_policy(node: Mapping[str, Any], unit: TimeUnit, base: type[OrderPolicy]) -> Any:
    """Parse a policy that derives from a base."""
    match node.get("type"):
        case "count":
            return CountPolicy(node.get("n", node.get("count", 0)))
        case "delta":
            return DeltaPolicy(
                node.get("field", "value"), node.get("by", node.get("delta", node.get("threshold")))
            )
        case "time":
            return TimePolicy(unit.parse_field(node, "size", "duration", "elapsed"))
        case str(kind):
            function = find_keyword_of(kind, POLICY_KEYWORDS, base)
            if function is None:
                raise UnsupportedCaseError(
                    f"the specification has no policy of type {kind!r} here; it has count, delta, time"
                )
            return parse_added_kind(function, node, unit)
        case other:
            raise invalid_field_error("the type of a policy", other, "one of count, delta, time")
