"""Random cases with any window, trigger, accumulation mode and pane policy, from a seed."""

import random
from typing import Any

ORDERED = ("tumbling", "moving")
AGGREGATES = ("sum", "count", "min", "max", "mean", "values", "first", "last", "distinct")
MODES = ("discarding", "accumulating", "retracting")
Node = dict[str, Any]


def generate_case(
    random_numbers: random.Random, number: int, window: Node | None = None, combine: str | None = None
) -> Node:
    """Generate a case. Cases with the same window and aggregate share a Spark job."""
    window = generate_window(random_numbers) if window is None else window
    node = {
        "id": f"case{number}",
        "unit": "s",
        "window": window,
        "trigger": generate_trigger(random_numbers, 2),
        "accumulation": random_numbers.choice(MODES),
        "allowed_lateness": random_numbers.choice([0, 3, 20]),
        "on_time_pane": random_numbers.choice(["always", "when_changed"]),
        "final_pane": random_numbers.choice(["never", "when_changed", "always"]),
        "combine": random_numbers.choice(AGGREGATES) if combine is None else combine,
        "steps": [generate_step(random_numbers) for _ in range(random_numbers.randint(3, 9))],
    }
    if window["type"] in ORDERED:
        del node["trigger"], node["allowed_lateness"], node["on_time_pane"], node["final_pane"]
    return node


def generate_window(random_numbers: random.Random) -> Node:
    """Generate a window of any kind."""
    count = {"type": "count", "n": random_numbers.randint(2, 5)}
    delta = {"type": "delta", "field": "value", "by": random_numbers.randint(1, 5)}
    time = {"type": "time", "size": random_numbers.randint(5, 30)}
    marked = {"type": "punctuation", "predicate": "value = 9"}
    return random_numbers.choice(
        [
            {"type": "fixed", "size": random_numbers.randint(3, 15), "offset": random_numbers.randint(0, 2)},
            {
                "type": "sliding",
                "size": random_numbers.randint(5, 15),
                "period": random_numbers.randint(2, 6),
            },
            {"type": "sessions", "gap": random_numbers.randint(2, 8)},
            {"type": "global"},
            {"type": "calendar", "unit": "day", "zone": "Europe/Berlin"},
            {"type": "fixed", "size": random_numbers.randint(3, 15), "time": "processing"},
            {"type": "tumbling", "close": random_numbers.choice([count, delta, time, marked])},
            {
                "type": "moving",
                "keep": random_numbers.choice([count, delta]),
                "show": random_numbers.choice([count, delta]),
            },
        ]
    )


def generate_trigger(random_numbers: random.Random, depth: int) -> Node:
    """Generate a trigger with at most this depth of nested triggers."""
    leaf: list[Node] = [
        {"type": "after_count", "count": random_numbers.randint(1, 3)},
        {"type": "after_processing_time", "delay": random_numbers.randint(1, 9)},
        {"type": "every", "period": random_numbers.randint(2, 9)},
        {"type": "after_watermark"},
    ]
    if depth == 0:
        return random_numbers.choice(leaf)
    one, other = (generate_trigger(random_numbers, depth - 1) for _ in range(2))
    ends, last = generate_trigger(random_numbers, 0), generate_trigger(random_numbers, depth - 1)
    return random_numbers.choice(
        [
            {"type": "default"},
            {"type": "after_watermark", "early": one, "late": other},
            {"type": "repeatedly", "of": one},
            {"type": "repeatedly", "of": random_numbers.choice(leaf)},
            {"type": "after_any", "of": [one, other]},
            {"type": "after_all", "of": [one, other]},
            {"type": "after_each", "of": [ends, last]},
            {"type": "or_finally", "of": one, "finally": other},
        ]
    )


def generate_step(random_numbers: random.Random) -> Node:
    """Generate elements, or an advance of the watermark or the clock."""
    kind = random_numbers.random()
    if kind < 0.6:
        return {
            "elements": [
                {
                    "key": random_numbers.choice("ab"),
                    "value": random_numbers.randint(0, 9),
                    "ts": random_numbers.randint(0, 40),
                }
                for _ in range(random_numbers.randint(1, 4))
            ]
        }
    return (
        {"watermark": random_numbers.randint(0, 45)}
        if kind < 0.8
        else {"processing_time": random_numbers.randint(0, 60)}
    )
