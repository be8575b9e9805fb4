"""Translates Flink test cases: one element at a time, with a watermark w that is our W = w + 1.

Flink triggers judge each element, so every input becomes a batch of its own. Results are compared at the end of
the run, as in the source. A trigger that fires maps to accumulating, one that purges to discarding.
"""

from collections.abc import Iterable, Iterator, Mapping
from math import inf, nextafter
from typing import Any

from penstock.engine.errors import TranscriptError

FlinkNode = Mapping[str, Any]
FLINK_MAX_TIMESTAMP = 2**63 - 1

WINDOW_TRANSLATIONS: Mapping[str, FlinkNode] = {
    "tumbling_event_time": {"type": "fixed"},
    "tumbling_processing_time": {"type": "fixed", "time": "processing"},
    "sliding_event_time": {"type": "sliding"},
    "sliding_processing_time": {"type": "sliding", "time": "processing"},
    "session_event_time": {"type": "sessions"},
}
FLINK_TRIGGER_TYPES = ("event_time", "processing_time", "end_of_stream", "count", "purging")
"""Windows and triggers with another name here and the same fields."""


def is_flink_case(case: FlinkNode) -> bool:
    """Tell whether a case is a Flink case."""
    return "window_function" in case


def translate_flink_case(case: FlinkNode) -> FlinkNode:
    """Translate a case. Terms without a counterpart keep their name, and are refused later."""
    translated_terms = translate_terms(case)
    is_processing_time = case["window"]["type"].endswith("processing_time")
    inputs = [item for step in case["steps"] for item in step["inputs"]]
    return {
        "id": case["id"],
        "window": translate_clock_sessions(translated_terms["window"]),
        "trigger": translated_terms["trigger"],
        "accumulation": translated_terms.get("accumulation", "accumulating"),
        "allowed_lateness": case["allowed_lateness_ms"],
        "combine": "sum",
        "steps": list(
            processing_time_steps(inputs)
            if is_processing_time
            else map(translate_step, filter(is_effective_input, inputs))
        ),
        "expect_all": [
            expected_pane(pane) for step in case["steps"] for pane in step["expect"] if "key" in pane
        ],
        **expected_late_records(case),
    }


def translate_terms(case: FlinkNode) -> FlinkNode:
    """Translate the window and the trigger of a case; other fields stay unchanged."""
    window, trigger = case.get("window"), case.get("trigger")
    translated_terms = dict(case)
    if isinstance(trigger, Mapping) and trigger.get("type") in FLINK_TRIGGER_TYPES:
        translated_terms["trigger"], accumulation = translate_trigger(trigger)
        translated_terms |= {"accumulation": accumulation} if accumulation == "discarding" else {}
    if isinstance(window, Mapping):
        translated_terms["window"] = {**window, **WINDOW_TRANSLATIONS.get(str(window.get("type")), {})}
        if case.get("evictor") is not None:
            translated_terms["window"] = build_order_window(
                window, translated_terms.get("trigger") or {}, case["evictor"]
            )
    return translated_terms


def translate_clock_sessions(window: FlinkNode) -> FlinkNode:
    """Translate processing-time sessions: the clock becomes the event time of their elements."""
    return {**window, "type": "sessions"} if window["type"] == "session_processing_time" else window


def build_order_window(window: FlinkNode, trigger: FlinkNode, evictor: FlinkNode) -> FlinkNode:
    """Combine the global window, a count trigger and an evictor into an order window."""
    inner_trigger = trigger.get("of", {})
    if (
        window["type"] != "global"
        or evictor["when"] != "before"
        or inner_trigger.get("type") != "after_count"
    ):
        raise TranscriptError("only order windows evict, and only before they fire")
    match evictor["type"]:
        case "count":
            evict_policy = {"type": "count", "n": evictor["keep"]}
        case "delta":
            evict_policy = {"type": "delta", "field": "value", "by": nextafter(evictor["threshold"], -inf)}
        case other:
            raise TranscriptError(f"eviction by {other!r} of event time is not supported")
    return {"type": "moving", "keep": evict_policy, "show": {"type": "count", "n": inner_trigger["count"]}}


def translate_trigger(trigger: FlinkNode) -> tuple[FlinkNode, str]:
    """Return the trigger and the accumulation mode."""
    match trigger["type"]:
        case "purging":
            return translate_trigger(trigger["inner"])[0], "discarding"
        case "event_time" | "processing_time" | "end_of_stream":
            return {"type": "default"}, "accumulating"
        case "count":
            return {
                "type": "repeatedly",
                "of": {"type": "after_count", "count": trigger["n"]},
            }, "accumulating"
        case _:
            return trigger, "accumulating"


def is_effective_input(item: FlinkNode) -> bool:
    """Tell whether an input has an effect; a savepoint with its restore has none."""
    return "op" not in item


def translate_step(item: FlinkNode) -> FlinkNode:
    """Translate one input to a step."""
    if "watermark" in item:
        return {"watermark": "inf" if item["watermark"] == FLINK_MAX_TIMESTAMP else item["watermark"] + 1}
    if "processing_time" in item:
        return {"processing_time": item["processing_time"]}
    return {"elements": [{"key": item["key"], "value": item["value"], "ts": item["timestamp"]}]}


def processing_time_steps(inputs: Iterable[FlinkNode]) -> Iterator[FlinkNode]:
    """Yield steps in which the clock is both the event time and the watermark.

    In Flink, a timer for t fires when the clock is set to t + 1, so the watermark is one ahead.
    """
    clock = 0
    for item in filter(is_effective_input, inputs):
        if "processing_time" in item:
            clock = item["processing_time"]
            yield {"processing_time": clock, "watermark": clock + 1}
        else:
            yield {"elements": [{"key": item["key"], "value": item["value"], "ts": clock}]}


def expected_pane(pane: FlinkNode) -> FlinkNode:
    """Translate an expected pane; a result without a window has the last instant of the window."""
    pane_fields = {"key": pane["key"], "value": pane["value"]}
    if "window_start" in pane:
        return {**pane_fields, "window": [pane["window_start"], pane["window_end"]]}
    if pane["timestamp"] == FLINK_MAX_TIMESTAMP:
        return pane_fields
    return {**pane_fields, "timestamp": pane["timestamp"]}


def expected_late_records(case: FlinkNode) -> FlinkNode:
    """Return the expected late side output, if there is one."""
    if not case.get("late_side_output"):
        return {}
    return {"expect_late": [pane for step in case["steps"] for pane in step.get("expect_late", ())]}
