"""The `window` of a case as a window of the plan."""

from collections.abc import Mapping
from typing import Any

from penstock.pipelines.errors import NotInContractError, TranscriptError
from penstock.pipelines.plan.policies import CountPolicy, DeltaPolicy, PunctuationPolicy, TimePolicy
from penstock.pipelines.plan.windows import (
    Calendar,
    CalendarUnit,
    Fixed,
    Global,
    Sessions,
    Sliding,
    SlidingOrder,
    Time,
    Tumbling,
    Window,
)
from penstock.pipelines.transcripts.conditions import PUNCTUATION, predicate_of
from penstock.pipelines.transcripts.form import refuse_misspelt, wrong
from penstock.pipelines.transcripts.units import Unit

CALENDAR: dict[str, CalendarUnit] = {"days": "day", "weeks": "week", "months": "month"}

WORDS = (
    *("fixed", "sliding", "sessions", "calendar", "global"),
    *("tumbling", "moving", "count", "delta", "punctuation", "time"),
)
FIELDS = (
    *("type", "size", "size_ms", "offset", "offset_ms", "time", "gap", "gap_ms"),
    *("period", "period_ms", "slide", "slide_ms", "every", "every_ms"),
    *("unit", "zone", "time_zone", "close", "keep", "show", "n", "count"),
    *("field", "by", "delta", "threshold", "duration", "duration_ms", "elapsed", "elapsed_ms", *PUNCTUATION),
)
"""What a window of some type may have."""


def window_of(node: Mapping[str, Any] | str, unit: Unit) -> Window:
    """Read a window; what the contract does not have is refused by name."""
    spoken: Mapping[str, Any] = {"type": node} if isinstance(node, str) else node
    if not isinstance(spoken, Mapping):
        raise TranscriptError(
            f"`window` is {spoken!r}; write an object with a type, as in {{'type': 'global'}}"
        )
    refuse_misspelt(spoken, FIELDS, "`window`")
    match spoken.get("type"):
        case "fixed" | "tumbling" if "close" not in spoken:
            size = unit.field(spoken, "size")
            return Fixed(size, within(unit.optional(spoken, "offset"), size), time_of(spoken))
        case "sliding" | "hopping":
            period = unit.field(spoken, "period", "slide", "every")
            return Sliding(
                unit.field(spoken, "size"),
                period,
                within(unit.optional(spoken, "offset"), period),
                time_of(spoken),
            )
        case "sessions" | "session":
            return Sessions(unit.field(spoken, "gap"))
        case "global":
            return Global()
        case "calendar":
            return Calendar(spoken.get("unit", "day"), spoken.get("zone", spoken.get("time_zone", "UTC")))
        case "days" | "weeks" | "months" as word:
            return Calendar(CALENDAR[word], spoken.get("zone", "UTC"))
        case "tumbling":
            return Tumbling(policy_of(inside(spoken, "close"), unit))
        case "moving":
            return SlidingOrder(kept_by(inside(spoken, "keep"), unit), kept_by(inside(spoken, "show"), unit))
        case "count" | "delta" | "punctuation" | "time":
            return Tumbling(policy_of(spoken, unit))
        case str(other):
            raise NotInContractError(
                f"the contract has no windows of type {other!r}; it has {', '.join(WORDS)}"
            )
        case other:
            raise wrong("`window.type`", other, f"one of {', '.join(WORDS)}")


def within(offset: int, period: int) -> int:
    """Return the offset within one period; whether there is such a period the window says."""
    return offset % period if period > 0 else 0


def time_of(node: Mapping[str, Any]) -> Time:
    """Return by which time the window is cut."""
    match node.get("time", "event"):
        case "event":
            return "event"
        case "processing":
            return "processing"
        case other:
            raise wrong("`window.time`", other, "event or processing")


def inside(node: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a policy that stands inside a window."""
    found = node.get(name)
    if not isinstance(found, Mapping):
        raise TranscriptError(f"{node.get('type')!r} needs a policy in `{name}`; found {found!r}")
    return found


def policy_of(
    node: Mapping[str, Any], unit: Unit
) -> CountPolicy | DeltaPolicy | PunctuationPolicy | TimePolicy:
    """Read a policy of an order window."""
    match node.get("type"):
        case "punctuation":
            return PunctuationPolicy(predicate_of(node))
        case _:
            return kept_by(node, unit)


def kept_by(node: Mapping[str, Any], unit: Unit) -> CountPolicy | DeltaPolicy | TimePolicy:
    """Read a policy for eviction or showing."""
    match node.get("type"):
        case "count":
            return CountPolicy(node.get("n", node.get("count", 0)))
        case "delta":
            return DeltaPolicy(
                node.get("field", "value"), node.get("by", node.get("delta", node.get("threshold")))
            )
        case "time":
            return TimePolicy(unit.field(node, "size", "duration", "elapsed"))
        case str(other):
            raise NotInContractError(
                f"the contract has no policy of type {other!r} here; it has count, delta, time"
            )
        case other:
            raise wrong("the type of a policy", other, "one of count, delta, time")
