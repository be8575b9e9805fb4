"""Measures ten expectations in a stream: the same records with and without them, in turns.

A round is four turns, without, with, with, without: what a machine does besides, and what Java learns meanwhile,
meets both alike, and a ratio is of one round's sums. A turn's time is from the commit of its first batch to that of
its last, so that nobody's start is measured. Beside it stands the processor time of Spark's process over the same
stretch, which others on the machine disturb less. None of the records breaks a check, so that only the asking is
paid for. One of the ten is a regular expression, which costs as much as several of the others.
`python -m tests.benchmarks.bench_quality_checks [--records N] [--repeats N]`.
"""

import argparse
import os
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_catchup import format_rate_spread
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

from penstock.engine.plan import Plan
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
    """Clock and processor seconds of a turn; turns can be added."""

    clock: float
    processor: float

    def __add__(self, other: "TurnCost") -> "TurnCost":
        return TurnCost(self.clock + other.clock, self.processor + other.processor)


def run_turn(one: BenchScene, plan: Plan, records: int) -> TurnCost:
    """Read all records; measure from the commit of the first batch."""
    rival = EngineRival(one, plan, BATCH_RECORDS)
    rival.start()
    wait_until_read(rival, 1)
    began, spent = rival.committed[0][0], read_cpu_seconds(one)
    wait_until_read(rival, records)
    took = TurnCost(rival.committed[-1][0] - began, read_cpu_seconds(one) - spent)
    rival.stop()
    return took


def read_cpu_seconds(one: BenchScene) -> float:
    """Return the processor time of Spark's process."""
    java = one.session._jvm  # there is no other way to ask
    assert java is not None
    told = Path(f"/proc/{java.java.lang.ProcessHandle.current().pid()}/stat").read_text()
    user, system = told.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def main(records: int, repeats: int) -> None:
    """Measure in rounds after one that is not counted, and print what is left of the throughput."""
    plain = plan_mean_by_device(CHECKED_TOPIC, Fixed(10_000))
    checked = add_ten_checks(plain)
    with open_scene() as one:
        one.broker.create_topic(CHECKED_TOPIC, 2)
        start_load(one.broker.bootstrap, CHECKED_TOPIC, 0, records, KEY_COUNT).wait()
        rounds = [
            [run_turn(one, plan, records) for plan in (plain, checked, checked, plain)]
            for _ in range(repeats + 1)
        ][1:]
    measured = 2 * (records - BATCH_RECORDS)
    sums = [(first + last, second + third) for first, second, third, last in rounds]
    table = Table(
        "",
        "records/s",
        "of plain",
        "processor time, of plain",
        title=f"{records:,} records, {repeats} rounds of four turns: median (least to greatest)",
    )
    table.add_row(
        "no check", format_rate_spread([measured / without.clock for without, _ in sums], ",.0f"), "1", "1"
    )
    table.add_row(
        "ten checks",
        format_rate_spread([measured / with_.clock for _, with_ in sums], ",.0f"),
        format_rate_spread([without.clock / with_.clock for without, with_ in sums], ".3f"),
        format_rate_spread([with_.processor / without.processor for without, with_ in sums], ".3f"),
    )
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    main(chosen.records, chosen.repeats)
