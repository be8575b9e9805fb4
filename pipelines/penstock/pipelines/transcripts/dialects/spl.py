"""Order windows as a window library's tests have them: one tuple after the other, and what was flushed or shown.

A mark of punctuation is a record without a value; one on an empty window has no effect there, and is left out.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from penstock.pipelines.errors import TranscriptError

POLICY = re.compile(r"(count|delta|punct)\(([^)]*)\)")


def speaks(case: Mapping[str, Any]) -> bool:
    """Tell whether a case is of this kind."""
    return "policy" in case


def translated(case: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the steps as a case in which every tuple is a batch of its own."""
    if not isinstance(case["steps"], list):
        raise TranscriptError("its steps are a sentence, which is for people to read")
    shown = case.get("flushed", case.get("triggered"))
    final = {} if shown is None else {"expect_all": [{"values": values} for values in shown]}
    return {
        "id": case["id"],
        "window": window_of(case["policy"]),
        "accumulation": "discarding",
        "steps": list(steps_of(case["steps"])),
        **final,
    }


def steps_of(steps: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield a batch for each tuple and mark, and after checks how often was shown."""
    counted: dict[Any, int] = {}
    filled = False
    for place, step in enumerate(steps):
        if "insert" in step or ("punct" in step and filled):
            filled = "insert" in step
            key, value = step.get("partition", 0), step.get("insert")
            yield {"elements": [{"key": key, "value": value, "ts": place, "punctuation": not filled}]}
        times = step.get("check", {}).get("flushes", step.get("check", {}).get("triggers"))
        if times is not None:
            counted[step["check"].get("partition", 0)] = times
        if times is not None and "check" not in (steps[place + 1] if place + 1 < len(steps) else {}):
            yield {"expect_all": [{"key": key} for key, count in counted.items() for _ in range(count)]}


def window_of(policy: str) -> dict[str, Any]:
    """Read `sliding, count(5), delta(attr, 2)`."""
    policies = [policy_of(word, arguments) for word, arguments in POLICY.findall(policy)]
    if policy.startswith("tumbling"):
        return {"type": "tumbling", "close": policies[0]}
    return {"type": "moving", "keep": policies[0], "show": policies[1]}


def policy_of(word: str, arguments: str) -> dict[str, Any]:
    """Read one policy."""
    number = arguments.split(",")[-1].strip()
    match word:
        case "count":
            return {"type": "count", "n": int(number)}
        case "delta":
            return {"type": "delta", "field": "value", "by": int(number)}
        case _:
            return {"type": "punctuation"}
