"""Cases of a window operator that takes one element at a time, whose watermark w is our W = w + 1.

Its triggers judge each element, so every input becomes a batch of its own; results are compared at the end of
the run, as the source does. What it keeps after a firing is ours to accumulate; what it purges, to discard.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf, nextafter
from typing import Any

from penstock.pipelines.errors import TranscriptError

Node = Mapping[str, Any]
END_OF_TIME = 2**63 - 1

WINDOWS: Mapping[str, Node] = {
    "tumbling_event_time": {"type": "fixed"},
    "tumbling_processing_time": {"type": "fixed", "time": "processing"},
    "sliding_event_time": {"type": "sliding"},
    "sliding_processing_time": {"type": "sliding", "time": "processing"},
    "session_event_time": {"type": "sessions"},
}
TRIGGERS = ("event_time", "processing_time", "end_of_stream", "count", "purging")
"""Windows and triggers that have another name here, and else the same fields."""


def speaks(case: Node) -> bool:
    """Tell whether a case is of this kind."""
    return "window_function" in case


def translated(case: Node) -> Node:
    """Return the case in the schema; what has no counterpart keeps its name, and is refused by it."""
    said = reworded(case)
    processing = case["window"]["type"].endswith("processing_time")
    inputs = [item for step in case["steps"] for item in step["inputs"]]
    return {
        "id": case["id"],
        "window": window_by_clock(said["window"]),
        "trigger": said["trigger"],
        "accumulation": said.get("accumulation", "accumulating"),
        "allowed_lateness": case["allowed_lateness_ms"],
        "combine": "sum",
        "steps": list(by_the_clock(inputs) if processing else map(step_of, filter(counts, inputs))),
        "expect_all": [expected(pane) for step in case["steps"] for pane in step["expect"] if "key" in pane],
        **late_expected(case),
    }


def reworded(case: Node) -> Node:
    """Return a case whose window and trigger are in our words, whatever its steps are; others stay as they are."""
    window, trigger = case.get("window"), case.get("trigger")
    said = dict(case)
    if isinstance(trigger, Mapping) and trigger.get("type") in TRIGGERS:
        said["trigger"], accumulation = trigger_of(trigger)
        said |= {"accumulation": accumulation} if accumulation == "discarding" else {}
    if isinstance(window, Mapping):
        said["window"] = {**window, **WINDOWS.get(str(window.get("type")), {})}
        if case.get("evictor") is not None:
            said["window"] = moving(window, said.get("trigger") or {}, case["evictor"])
    return said


def window_by_clock(window: Node) -> Node:
    """Return sessions of processing time as sessions: their elements get the clock as their time."""
    return {**window, "type": "sessions"} if window["type"] == "session_processing_time" else window


def moving(window: Node, trigger: Node, evictor: Node) -> Node:
    """Return the order window that a count trigger and an evictor before it make of the global window."""
    shows = trigger.get("of", {})
    if window["type"] != "global" or evictor["when"] != "before" or shows.get("type") != "after_count":
        raise TranscriptError("the contract evicts in order windows only, and before they show")
    match evictor["type"]:
        case "count":
            keep = {"type": "count", "n": evictor["keep"]}
        case "delta":
            keep = {"type": "delta", "field": "value", "by": nextafter(evictor["threshold"], -inf)}
        case other:
            raise TranscriptError(f"the contract has no eviction by {other!r} of event time")
    return {"type": "moving", "keep": keep, "show": {"type": "count", "n": shows["count"]}}


def trigger_of(trigger: Node) -> tuple[Node, str]:
    """Return the trigger, and how its panes relate."""
    match trigger["type"]:
        case "purging":
            return trigger_of(trigger["inner"])[0], "discarding"
        case "event_time" | "processing_time" | "end_of_stream":
            return {"type": "default"}, "accumulating"
        case "count":
            return {
                "type": "repeatedly",
                "of": {"type": "after_count", "count": trigger["n"]},
            }, "accumulating"
        case _:
            return trigger, "accumulating"


def counts(item: Node) -> bool:
    """Tell whether an input is more than a save and a restore, which change no answer."""
    return "op" not in item


def step_of(item: Node) -> Node:
    """Return the step of one input."""
    if "watermark" in item:
        return {"watermark": "inf" if item["watermark"] == END_OF_TIME else item["watermark"] + 1}
    if "processing_time" in item:
        return {"processing_time": item["processing_time"]}
    return {"elements": [{"key": item["key"], "value": item["value"], "ts": item["timestamp"]}]}


def by_the_clock(inputs: Iterable[Node]) -> Iterator[Node]:
    """Yield steps in which the clock is both the elements' time and the watermark.

    A timer that is due at t fires there when the clock is set to t + 1, so the watermark is one ahead.
    """
    clock = 0
    for item in filter(counts, inputs):
        if "processing_time" in item:
            clock = item["processing_time"]
            yield {"processing_time": clock, "watermark": clock + 1}
        else:
            yield {"elements": [{"key": item["key"], "value": item["value"], "ts": clock}]}


def expected(pane: Node) -> Node:
    """Return what is expected of a pane; a result without a window has the window's last instant."""
    shown = {"key": pane["key"], "value": pane["value"]}
    if "window_start" in pane:
        return {**shown, "window": [pane["window_start"], pane["window_end"]]}
    if pane["timestamp"] == END_OF_TIME:
        return shown
    return {**shown, "timestamp": pane["timestamp"]}


def late_expected(case: Node) -> Node:
    """Return what the side output is expected to hold, where there is one."""
    if not case.get("late_side_output"):
        return {}
    return {"expect_late": [pane for step in case["steps"] for pane in step.get("expect_late", ())]}
