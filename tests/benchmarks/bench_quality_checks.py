"""Measures the cost of ten expectations in a stream: the same records with and without them, in turns.

A round has four turns: without, with, with, without. This order balances the warm-up of the JVM and the load of the
machine, and a ratio compares the sums of one round. The time of a turn runs from the commit of its first batch to
the commit of its last, so it does not include the start. The CPU time of the JVM over the same interval is printed
too: other processes affect it less. All records are valid, so only the checks are measured. One of the ten is a
regular expression, which costs as much as several others. `python -m tests.benchmarks.bench_quality_checks
[--records N] [--repeats N]`.
"""

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_catchup import format_spread
from tests.benchmarks.rivals import (
    KEY_COUNT,
    READING_COLUMNS,
    BenchScene,
    EngineRival,
    open_scene,
    plan_mean_by_device,
    start_load,
    wait_until_read,
)

from penstock.engine.plan.stages import Plan
from penstock.engine.windows.fixed import Fixed
from penstock.quality.expectations.sql_compiler import compile_row_check
from penstock.quality.expectations.suite import Expectation

CHECKED_TOPIC = "checked"
BATCH_RECORDS = 250_000
TEN_EXPECTATIONS = (
    ("expect_column_values_to_not_be_null", {"column": "device"}),
    ("expect_column_values_to_match_regex", {"column": "device", "regex": "^d[0-9]+$"}),
    ("expect_column_values_to_not_be_null", {"column": "temperature"}),
    ("expect_column_value_lengths_to_be_between", {"column": "device", "min_value": 2, "max_value": 12}),
    ("expect_column_values_to_not_be_in_set", {"column": "device", "value_set": ["dx", "dy", "dz"]}),
    ("expect_column_values_to_not_be_null", {"column": "at"}),
    ("expect_column_values_to_be_between", {"column": "at", "min_value": 0, "max_value": 2**42}),
    ("expect_column_values_to_be_between", {"column": "temperature", "min_value": -80, "max_value": 80}),
    ("expect_column_values_to_not_be_in_set", {"column": "temperature", "value_set": [-1.0, 99.9]}),
    ("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "at", "column_B": "temperature"}),
)


def add_ten_checks(plan: Plan) -> Plan:
    """Add ten checks to the plan."""
    checks = tuple(
        compile_row_check(Expectation(kind, kwargs, f"check_{number}", "quarantine"), READING_COLUMNS)
        for number, (kind, kwargs) in enumerate(TEN_EXPECTATIONS)
    )
    return replace(plan, sources=(replace(plan.sources[0], checks=checks),))


@dataclass(frozen=True)
class TurnCost:
    """Wall-clock and CPU seconds of a turn; turns can be added."""

    seconds: float
    cpu_seconds: float

    def __add__(self, other: "TurnCost") -> "TurnCost":
        return TurnCost(self.seconds + other.seconds, self.cpu_seconds + other.cpu_seconds)


def run_turn(scene: BenchScene, plan: Plan, records: int) -> TurnCost:
    """Read all records, and measure from the commit of the first batch."""
    rival = EngineRival(scene, plan, BATCH_RECORDS)
    rival.start()
    wait_until_read(rival, 1)
    started, cpu_before_s = rival.committed[0][0], read_cpu_seconds(scene)
    wait_until_read(rival, records)
    cost = TurnCost(rival.committed[-1][0] - started, read_cpu_seconds(scene) - cpu_before_s)
    rival.stop()
    return cost


def read_cpu_seconds(scene: BenchScene) -> float:
    """Return the CPU seconds of the JVM of Spark."""
    java = scene.session._jvm  # PySpark has no public access to the JVM
    assert java is not None
    stat = Path(f"/proc/{java.java.lang.ProcessHandle.current().pid()}/stat").read_text()
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def main(records: int, repeats: int) -> None:
    """Measure in rounds after a warm-up round, and print the throughput with checks."""
    plain = plan_mean_by_device(CHECKED_TOPIC, Fixed(10_000))
    checked = add_ten_checks(plain)
    with open_scene() as scene:
        scene.broker.create_topic(CHECKED_TOPIC, 2)
        start_load(scene.broker.bootstrap, CHECKED_TOPIC, 0, records, KEY_COUNT).wait()
        rounds = [
            [run_turn(scene, plan, records) for plan in (plain, checked, checked, plain)]
            for _ in range(repeats + 1)
        ][1:]
    records_per_sum = 2 * (records - BATCH_RECORDS)
    sums = [(first + last, second + third) for first, second, third, last in rounds]
    table = Table(
        "variant",
        "records/s",
        "of plain",
        "CPU time, of plain",
        title=f"{records:,} records, {repeats} rounds of four turns: median (min to max)",
    )
    table.add_row(
        "no check",
        format_spread([records_per_sum / without.seconds for without, _ in sums], ",.0f"),
        "1",
        "1",
    )
    table.add_row(
        "ten checks",
        format_spread([records_per_sum / with_.seconds for _, with_ in sums], ",.0f"),
        format_spread([without.seconds / with_.seconds for without, with_ in sums], ".3f"),
        format_spread([with_.cpu_seconds / without.cpu_seconds for without, with_ in sums], ".3f"),
    )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000, help="records in the topic")
    parser.add_argument("--repeats", type=int, default=5, help="measured rounds")
    arguments = parser.parse_args()
    main(arguments.records, arguments.repeats)
