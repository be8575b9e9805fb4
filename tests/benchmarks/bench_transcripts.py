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

from tests.pipelines.transcripts.random_cases import case
from tests.pipelines.transcripts.test_on_spark import in_any_order

from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java
from penstock.pipelines.spark.session import SparkConfig, open_session
from penstock.pipelines.transcripts import ReferenceEngine, run_nodes
from penstock.pipelines.transcripts.on_spark import SparkEngine

JARS = Path(__file__).parents[2] / ".penstock" / "jars"


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


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
