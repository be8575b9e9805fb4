"""Translates SPL window library cases: one tuple at a time, with the flushed or shown windows.

A punctuation is a record without a value. A punctuation on an empty window has no effect there, and is omitted.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.engine.errors import TranscriptError

POLICY_PATTERN = re.compile(r"(count|delta|punct)\(([^)]*)\)")


def is_spl_case(case: Mapping[str, Any]) -> bool:
    """Tell whether a case is an SPL case."""
    return "policy" in case


def translate_spl_case(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """Translate a case; every tuple becomes a batch."""
    if not isinstance(case["steps"], list):
        raise TranscriptError("its steps are prose")
    emitted = case.get("flushed", case.get("triggered"))
    final_check = {} if emitted is None else {"expect_all": [{"values": values} for values in emitted]}
    return {
        "id": case["id"],
        "window": translate_window(case["policy"]),
        "accumulation": "discarding",
        "steps": list(translate_steps(case["steps"])),
        **final_check,
    }


def translate_steps(steps: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield a batch for each tuple and punctuation, followed by the expected windows."""
    emission_counts: dict[Any, int] = {}
    has_elements = False
    for position, step in enumerate(steps):
        if "insert" in step or ("punct" in step and has_elements):
            has_elements = "insert" in step
            key, value = step.get("partition", 0), step.get("insert")
            yield {
                "elements": [{"key": key, "value": value, "ts": position, "punctuation": not has_elements}]
            }
        emission_count = step.get("check", {}).get("flushes", step.get("check", {}).get("triggers"))
        if emission_count is not None:
            emission_counts[step["check"].get("partition", 0)] = emission_count
        if emission_count is not None and "check" not in (
            steps[position + 1] if position + 1 < len(steps) else {}
        ):
            yield {
                "expect_all": [{"key": key} for key, count in emission_counts.items() for _ in range(count)]
            }


def translate_window(policy: str) -> dict[str, Any]:
    """Parse `sliding, count(5), delta(attr, 2)`."""
    policies = [translate_policy(kind, arguments) for kind, arguments in POLICY_PATTERN.findall(policy)]
    if policy.startswith("tumbling"):
        return {"type": "tumbling", "close": policies[0]}
    return {"type": "moving", "keep": policies[0], "show": policies[1]}


def translate_policy(kind: str, arguments: str) -> dict[str, Any]:
    """Parse one policy."""
    number = arguments.split(",")[-1].strip()
    match kind:
        case "count":
            return {"type": "count", "n": int(number)}
        case "delta":
            return {"type": "delta", "field": "value", "by": int(number)}
        case _:
            return {"type": "punctuation"}
