"""Translates window assignment cases: one batch of elements, and all windows at the end of the input."""

from collections.abc import Mapping
from typing import Any


def is_assignment_case(case: Mapping[str, Any]) -> bool:
    """Tell whether a case is a window assignment case."""
    return "window" in case and "expect" in case and "steps" not in case


def translate_assignment_case(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """Translate a case. The time of an element is its value; fractional times use a finer unit."""
    times = case.get("input") or sorted({time for pane in case["expect"] for time in pane["ts"]})
    elements = [{"key": "k", "value": time, "ts": time} for time in times]
    expected = [{"window": pane["window"], "values": pane["ts"]} for pane in case["expect"]]
    return {
        "id": case["id"],
        "unit": "s",
        "window": case["window"],
        "trigger": {"type": "default"},
        "accumulation": "accumulating",
        "steps": [{"elements": elements}, {"watermark": "inf"}, {"expect": expected}],
    }
