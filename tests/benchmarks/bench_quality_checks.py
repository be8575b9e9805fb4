"""What ten expectations cost in the stream: the same records with and without them, in turns.

A time is from the start of the stream to the commit of the last record; a ratio is of one round. None of the
records breaks a check, so that only the asking is paid for. One of the ten is a regular expression, which costs as
much as several of the others.
`python -m tests.benchmarks.bench_quality_checks [--records N] [--repeats N]`.
"""

import argparse
from dataclasses import replace

from rich.console import Console
from rich.table import Table
from tests.benchmarks.bench_pipelines_catchup import spread, timed
from tests.benchmarks.rivals import COLUMNS, KEYS, Ours, Scene, load, plan_over, scene

from penstock.pipelines.plan import Plan
from penstock.pipelines.plan.windows import Fixed
from penstock.quality.expectations.compile import row_check
from penstock.quality.expectations.suite import Expectation

TOPIC = "checked"
TEN = (
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


def with_ten(plan: Plan) -> Plan:
    """The plan with ten checks of its records."""
    checks = tuple(
        row_check(Expectation(kind, kwargs, f"check_{number}", "quarantine"), COLUMNS)
        for number, (kind, kwargs) in enumerate(TEN)
    )
    return replace(plan, sources=(replace(plan.sources[0], checks=checks),))


def seconds(one: Scene, plan: Plan, records: int) -> float:
    """How long a stream takes over so many records."""
    return timed(Ours(one, plan), records)


def main(records: int, repeats: int) -> None:
    """Measure in turns after a round that is not counted, and print what is left of the throughput."""
    plain = plan_over(TOPIC, Fixed(10_000))
    checked = with_ten(plain)
    with scene() as one:
        one.broker.create_topic(TOPIC, 2)
        load(one.broker.bootstrap, TOPIC, 0, records, KEYS).wait()
        rounds = [(seconds(one, plain, records), seconds(one, checked, records)) for _ in range(repeats + 1)]
    table = Table(
        "",
        "records/s",
        "of plain",
        title=f"{records:,} records, {repeats} repeats: median (least to greatest)",
    )
    table.add_row("no check", spread([records / plain_s for plain_s, _ in rounds[1:]], ",.0f"), "1")
    rates = [records / checked_s for _, checked_s in rounds[1:]]
    shares = [plain_s / checked_s for plain_s, checked_s in rounds[1:]]
    table.add_row("ten checks", spread(rates, ",.0f"), spread(shares, ".2f"))
    Console().print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=5)
    chosen = parser.parse_args()
    main(chosen.records, chosen.repeats)
