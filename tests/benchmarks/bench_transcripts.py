"""Measures random conformance cases on Spark: `python -m tests.benchmarks.bench_transcripts [CASES] [SEED]`.

The cases use every kind of window, trigger and accumulation mode. Almost all plans differ, so almost no cases share
a Spark job, which is the most expensive case. The results are compared with the reference evaluator.
"""

import argparse
import random
import tempfile
from collections import Counter
from pathlib import Path
from time import perf_counter

from tests.pipelines.conformance.transcripts.random_cases import generate_case
from tests.pipelines.conformance.transcripts.test_on_spark import sort_panes

from penstock.conformance import ReferenceEngine, run_cases
from penstock.conformance.on_spark import SparkEngine
from penstock.engine.spark.session import SparkSessionConfig, open_spark_session
from penstock.infra.jars import ensure_jars
from penstock.infra.java import find_java

JAR_FOLDER = Path(__file__).parents[2] / ".penstock" / "jars"


def main(cases: int, seed: int) -> None:
    """Run cases on both engines, and print how long Spark took and how many differ."""
    rng = random.Random(seed)
    nodes = [generate_case(rng, number) for number in range(cases)]
    batches = sum(len(node["steps"]) for node in nodes)
    with tempfile.TemporaryDirectory() as folder:
        config = SparkSessionConfig(
            ensure_jars(JAR_FOLDER, ["spark"]), Path(folder), java_home=find_java().home
        )
        session = open_spark_session(config)
        started = perf_counter()
        spark_results = list(run_cases(nodes, SparkEngine(session)))
        seconds = perf_counter() - started
        session.stop()
    reference_results = list(run_cases(nodes, ReferenceEngine()))
    differing = [
        a.id
        for a, b in zip(spark_results, reference_results, strict=True)
        if sort_panes(a.actual) != sort_panes(b.actual)
    ]
    kinds = Counter(node["window"]["type"] for node in nodes)
    print(f"{cases} cases with {batches} batches: {seconds:.1f} s, {seconds / cases * 1000:.0f} ms per case")
    print(f"windows: {dict(kinds)}; different from the reference: {len(differing)} {differing[:5]}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "cases", nargs="?", type=int, default=200, help="number of cases (default: %(default)s)"
    )
    parser.add_argument(
        "seed", nargs="?", type=int, default=1, help="seed of the cases (default: %(default)s)"
    )
    arguments = parser.parse_args()
    main(arguments.cases, arguments.seed)
