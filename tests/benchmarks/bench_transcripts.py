"""How long recorded cases take on Spark: `python -m tests.benchmarks.bench_transcripts [CASES] [SEED]`.

Cases are random, of every kind of window, trigger and mode, and hardly two have equal plans, which is the dearest
case: nothing shares a job. What comes of each is compared with the reference evaluator.
"""

import random
import sys
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

from tests.pipelines.transcripts.test_on_spark import in_any_order

from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java
from penstock.pipelines.spark.session import SparkConfig, open_session
from penstock.pipelines.transcripts import ReferenceEngine, run_nodes
from penstock.pipelines.transcripts.on_spark import SparkEngine

JARS = Path(__file__).parents[2] / ".penstock" / "jars"
ORDERED = ("tumbling", "moving")


def main(cases: int = 200, seed: int = 1) -> None:
    """Run cases on both engines, and print how long Spark took and how many differ."""
    chance = random.Random(seed)
    nodes = [case(chance, number) for number in range(cases)]
    batches = sum(len(node["steps"]) for node in nodes)
    with tempfile.TemporaryDirectory() as folder:
        config = SparkConfig(ensure_jars(JARS, ["spark"]), Path(folder), java_home=find_java().home)
        session = open_session(config)
        began = perf_counter()
        ours = list(run_nodes(nodes, SparkEngine(session)))
        took = perf_counter() - began
        session.stop()
    theirs = list(run_nodes(nodes, ReferenceEngine()))
    differing = [
        a.id for a, b in zip(ours, theirs, strict=True) if in_any_order(a.got) != in_any_order(b.got)
    ]
    kinds = Counter(node["window"]["type"] for node in nodes)
    print(f"{cases} cases of {batches} batches: {took:.1f} s, {took / cases * 1000:.0f} ms a case")
    print(f"windows: {dict(kinds)}; differing from the reference: {len(differing)} {differing[:5]}")


def case(chance: random.Random, number: int) -> dict[str, Any]:
    """A case of its own kind."""
    window = window_of(chance)
    node = {
        "id": f"case{number}",
        "unit": "s",
        "window": window,
        "trigger": trigger_of(chance, 2),
        "accumulation": chance.choice(["discarding", "accumulating", "retracting"]),
        "allowed_lateness": chance.choice([0, 3, 20]),
        "combine": chance.choice(
            ["sum", "count", "min", "max", "mean", "values", "first", "last", "distinct"]
        ),
        "steps": [step(chance) for _ in range(chance.randint(3, 9))],
    }
    if window["type"] in ORDERED:
        del node["trigger"], node["allowed_lateness"]
    return node


def window_of(chance: random.Random) -> dict[str, Any]:
    """A window of any kind."""
    count = {"type": "count", "n": chance.randint(2, 5)}
    delta = {"type": "delta", "field": "value", "by": chance.randint(1, 5)}
    return chance.choice(
        [
            {"type": "fixed", "size": chance.randint(3, 15), "offset": chance.randint(0, 2)},
            {"type": "sliding", "size": chance.randint(5, 15), "period": chance.randint(2, 6)},
            {"type": "sessions", "gap": chance.randint(2, 8)},
            {"type": "global"},
            {"type": "fixed", "size": chance.randint(3, 15), "time": "processing"},
            {"type": "tumbling", "close": chance.choice([count, delta])},
            {"type": "moving", "keep": chance.choice([count, delta]), "show": chance.choice([count, delta])},
        ]
    )


def trigger_of(chance: random.Random, depth: int) -> dict[str, Any]:
    """A trigger that never finishes, or one of its parts."""
    leaf: list[dict[str, Any]] = [
        {"type": "after_count", "count": chance.randint(1, 3)},
        {"type": "after_processing_time", "delay": chance.randint(1, 9)},
        {"type": "every", "period": chance.randint(2, 9)},
        {"type": "after_watermark"},
    ]
    if depth == 0:
        return chance.choice(leaf)
    parts = [trigger_of(chance, 0) for _ in range(2)]
    inner = [*leaf, {"type": "after_any", "of": parts}, {"type": "after_all", "of": parts}]
    early, late = ({"type": "after_count", "count": chance.randint(1, 3)} for _ in range(2))
    return chance.choice(
        [
            {"type": "default"},
            {"type": "after_watermark", "early": early, "late": late},
            {"type": "repeatedly", "of": chance.choice(inner)},
        ]
    )


def step(chance: random.Random) -> dict[str, Any]:
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


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
