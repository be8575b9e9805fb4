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

from tests.pipelines.conformance.transcripts.random_cases import case
from tests.pipelines.conformance.transcripts.test_on_spark import in_any_order

from penstock.conformance import ReferenceEngine, run_cases
from penstock.conformance.on_spark import SparkEngine
from penstock.engine.spark.session import SparkSessionConfig, open_spark_session
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java

JAR_FOLDER = Path(__file__).parents[2] / ".penstock" / "jars"


def main(cases: int = 200, seed: int = 1) -> None:
    """Run cases on both engines, and print how long Spark took and how many differ."""
    chance = random.Random(seed)
    nodes = [case(chance, number) for number in range(cases)]
    batches = sum(len(node["steps"]) for node in nodes)
    with tempfile.TemporaryDirectory() as folder:
        config = SparkSessionConfig(
            ensure_jars(JAR_FOLDER, ["spark"]), Path(folder), java_home=find_java().home
        )
        session = open_spark_session(config)
        began = perf_counter()
        ours = list(run_cases(nodes, SparkEngine(session)))
        took = perf_counter() - began
        session.stop()
    theirs = list(run_cases(nodes, ReferenceEngine()))
    differing = [
        a.id for a, b in zip(ours, theirs, strict=True) if in_any_order(a.actual) != in_any_order(b.actual)
    ]
    kinds = Counter(node["window"]["type"] for node in nodes)
    print(f"{cases} cases of {batches} batches: {took:.1f} s, {took / cases * 1000:.0f} ms a case")
    print(f"windows: {dict(kinds)}; differing from the reference: {len(differing)} {differing[:5]}")


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:]))
