"""Facts about which window an element is in: one batch of elements, and at the end of the input every window."""

from collections.abc import Mapping
from typing import Any


def is_assignment_case(case: Mapping[str, Any]) -> bool:
    """Tell whether a case is of this kind."""
    return "window" in case and "expect" in case and "steps" not in case


def translate_assignment_case(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the facts as a case; an element is named by its time. A time of a fraction is one of a finer unit."""
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
