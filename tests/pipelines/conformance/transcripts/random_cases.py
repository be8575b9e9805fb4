"""Random cases of every kind of window, trigger, mode and policy of panes, from a seed."""

import random
from typing import Any

ORDERED = ("tumbling", "moving")
AGGREGATES = ("sum", "count", "min", "max", "mean", "values", "first", "last", "distinct")
MODES = ("discarding", "accumulating", "retracting")
Node = dict[str, Any]


def case(chance: random.Random, number: int, window: Node | None = None, combine: str | None = None) -> Node:
    """A case of its own kind; with a window and an aggregate that are given, many cases share a job of Spark's."""
    window = window_of(chance) if window is None else window
    node = {
        "id": f"case{number}",
        "unit": "s",
        "window": window,
        "trigger": trigger_of(chance, 2),
        "accumulation": chance.choice(MODES),
        "allowed_lateness": chance.choice([0, 3, 20]),
        "on_time_pane": chance.choice(["always", "when_changed"]),
        "final_pane": chance.choice(["never", "when_changed", "always"]),
        "combine": chance.choice(AGGREGATES) if combine is None else combine,
        "steps": [step(chance) for _ in range(chance.randint(3, 9))],
    }
    if window["type"] in ORDERED:
        del node["trigger"], node["allowed_lateness"], node["on_time_pane"], node["final_pane"]
    return node


def window_of(chance: random.Random) -> Node:
    """A window of any kind."""
    count = {"type": "count", "n": chance.randint(2, 5)}
    delta = {"type": "delta", "field": "value", "by": chance.randint(1, 5)}
    time = {"type": "time", "size": chance.randint(5, 30)}
    marked = {"type": "punctuation", "predicate": "value = 9"}
    return chance.choice(
        [
            {"type": "fixed", "size": chance.randint(3, 15), "offset": chance.randint(0, 2)},
            {"type": "sliding", "size": chance.randint(5, 15), "period": chance.randint(2, 6)},
            {"type": "sessions", "gap": chance.randint(2, 8)},
            {"type": "global"},
            {"type": "calendar", "unit": "day", "zone": "Europe/Berlin"},
            {"type": "fixed", "size": chance.randint(3, 15), "time": "processing"},
            {"type": "tumbling", "close": chance.choice([count, delta, time, marked])},
            {"type": "moving", "keep": chance.choice([count, delta]), "show": chance.choice([count, delta])},
        ]
    )


def trigger_of(chance: random.Random, depth: int) -> Node:
    """A trigger, or a part of one; with a depth of 0 one without parts."""
    leaf: list[Node] = [
        {"type": "after_count", "count": chance.randint(1, 3)},
        {"type": "after_processing_time", "delay": chance.randint(1, 9)},
        {"type": "every", "period": chance.randint(2, 9)},
        {"type": "after_watermark"},
    ]
    if depth == 0:
        return chance.choice(leaf)
    one, other = (trigger_of(chance, depth - 1) for _ in range(2))
    ends, last = trigger_of(chance, 0), trigger_of(chance, depth - 1)
    return chance.choice(
        [
            {"type": "default"},
            {"type": "after_watermark", "early": one, "late": other},
            {"type": "repeatedly", "of": one},
            {"type": "repeatedly", "of": chance.choice(leaf)},
            {"type": "after_any", "of": [one, other]},
            {"type": "after_all", "of": [one, other]},
            {"type": "after_each", "of": [ends, last]},
            {"type": "or_finally", "of": one, "finally": other},
        ]
    )


def step(chance: random.Random) -> Node:
    """Elements, or a move of watermark or clock; never back."""
    kind = chance.random()
    if kind < 0.6:
        return {
            "elements": [
                {"key": chance.choice("ab"), "value": chance.randint(0, 9), "ts": chance.randint(0, 40)}
                for _ in range(chance.randint(1, 4))
            ]
        }
    return {"watermark": chance.randint(0, 45)} if kind < 0.8 else {"processing_time": chance.randint(0, 60)}
