"""Measures catch-up from JSON with and without the strict parser: `python -m tests.benchmarks.bench_json_catchup`.

Both read the same topic into a Delta table of fixed windows, in turns, after a warm-up round. The CPU time is that
of Spark and the broker together; unlike the throughput, it says something while the machine does other work.
"""

import argparse
import time
from unittest.mock import patch

from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_json_parsing import read_child_seconds
from tests.benchmarks.bench_pipelines_catchup import format_spread
from tests.benchmarks.rivals import (
    KEY_COUNT,
    BenchScene,
    EngineRival,
    open_scene,
    plan_mean_by_device,
    start_load,
    wait_until_read,
)

from penstock.engine.windows.fixed import Fixed

TOPIC = "stored"


def run_stream(scene: BenchScene, records: int) -> tuple[float, float]:
    """Run the stream until it has committed all records; return the seconds and the CPU seconds."""
    started, cpu_started = time.perf_counter(), read_child_seconds()
    rival = EngineRival(scene, plan_mean_by_device(TOPIC, Fixed(10_000)))
    rival.start()
    wait_until_read(rival, records)
    seconds, cpu_seconds = time.perf_counter() - started, read_child_seconds() - cpu_started
    rival.stop()
    return seconds, cpu_seconds


def run_without_parser(scene: BenchScene, records: int) -> tuple[float, float]:
    """Run the stream with `from_json` and the proofs in SQL."""
    with patch("penstock.engine.spark.parse.parser_selection.find_parser_class", lambda _: None):
        return run_stream(scene, records)


def main(records: int, keys: int, repeats: int) -> None:
    """Measure both in turns, and print records per second and CPU time."""
    variants = {"from_json, proof in SQL": run_without_parser, "strict parser": run_stream}
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in variants}
    with open_scene() as scene:
        scene.broker.create_topic(TOPIC, 2)
        start_load(scene.broker.bootstrap, TOPIC, 0, records, keys).wait()
        for run in variants.values():
            run(scene, records)
        for _ in range(repeats):
            for name, run in variants.items():
                measured[name].append(run(scene, records))
    title = f"{records:,} records, {keys:,} keys, {repeats} repeats: median (min to max)"
    table = Table("variant", "records/s", "µs of CPU a record", title=title)
    for name, runs in measured.items():
        rates = [records / seconds for seconds, _ in runs]
        costs = [cpu_seconds / records * 1e6 for _, cpu_seconds in runs]
        table.add_row(name, format_spread(rates, ",.0f"), format_spread(costs, ".2f"))
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000, help="records in the topic")
    parser.add_argument("--keys", type=int, default=KEY_COUNT, help="distinct keys")
    parser.add_argument("--repeats", type=int, default=5, help="measured rounds")
    arguments = parser.parse_args()
    main(arguments.records, arguments.keys, arguments.repeats)
