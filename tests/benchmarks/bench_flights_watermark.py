"""What a watermark's bound buys and costs, on real delays: flights of two days, told when they left.

For each bound the shipped pipeline `flight_delays` runs as it is, but for its bound. Of each airport and hour it is
asked how many of its flights the on-time pane held, and how long after the hour's end that pane came.
`python -m tests.benchmarks.bench_flights_watermark [--out PICTURE.svg]`.
"""

import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.pipelines import catalog
from penstock.pipelines.demonstration import Demo
from penstock.pipelines.pictures import Curve, Point, curves
from penstock.platform.demo.run import Ran, run_plan
from penstock.platform.local_spark import spark_session
from penstock.platform.settings import load_settings

MINUTE = 60_000
BOUNDS = (0, 20, 40, 60, 120, 240)
DEMO = Demo(last="2 days", step="20 minutes")


@dataclass(frozen=True)
class Measured:
    """What a bound comes to, in minutes and shares."""

    bound: int
    middle: float
    mean: float
    slowest: float
    complete: float
    whole: float
    corrections: int


def measured(bound: int, ran: Ran) -> Measured:
    """Compare the on-time pane of each window with its last one."""
    inserted = [row for row in ran.told.panes if row["kind"] == "insert"]
    last = {(row["origin"], row["window_start"]): row["flights"] for row in inserted}
    on_time = [row for row in inserted if row["timing"] == "on_time" and row["watermark"] is not None]
    waits = [(row["batch_clock"] - row["window_end"]).total_seconds() / 60 for row in on_time]
    shares = [row["flights"] / last[row["origin"], row["window_start"]] for row in on_time]
    return Measured(
        bound,
        statistics.median(waits),
        statistics.mean(waits),
        max(waits),
        statistics.mean(shares),
        sum(share == 1 for share in shares) / len(shares),
        sum(row["timing"] == "late" for row in inserted),
    )


def main(out: Path | None) -> None:
    """Run all bounds on one broker and in one session."""
    settings = load_settings().settings
    found: list[Measured] = []
    plan = catalog.load("flight_delays")
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalBroker.in_directory(Path(folder, "broker"), ensure_jars(settings.jars, ["kafka"])) as broker,
        spark_session(settings, "flights") as session,
    ):
        for bound in BOUNDS:
            (source,) = plan.sources
            rule = replace(source.watermark, bound=bound * MINUTE)
            named = replace(plan.stage, name=f"bound_{bound}")
            changed = replace(
                plan, name=named.name, sources=(replace(source, watermark=rule),), stages=(named,)
            )
            ran = run_plan(changed, DEMO, session, broker.bootstrap, Path(folder, str(bound)), lambda _: None)
            found.append(measured(bound, ran))
            print(f"a bound of {bound} minutes: {len(ran.outcomes)} batches", file=sys.stderr)
    show(found)
    if out is not None:
        out.write_text(drawn(found), "utf-8")


def show(found: Sequence[Measured]) -> None:
    """Print a row for each bound."""
    table = Table(
        "bound, min",
        "waited p50, min",
        "mean",
        "longest",
        "flights held",
        "hours whole",
        "late panes",
    )
    for each in found:
        waited = (f"{minutes:.0f}" for minutes in (each.middle, each.mean, each.slowest))
        shares = (f"{each.complete:.1%}", f"{each.whole:.1%}")
        table.add_row(str(each.bound), *waited, *shares, str(each.corrections))
    Console().print(table)


def drawn(found: Sequence[Measured]) -> str:
    """Draw completeness over latency."""
    held = [Point(each.mean, 100 * each.complete, f"{each.bound} min") for each in found]
    whole = [Point(each.mean, 100 * each.whole, f"{each.bound} min") for each in found]
    words = ("minutes from the end of an hour to its on-time pane (mean)", "percent, by the on-time pane")
    title = "Watermark bound: what waiting buys, on the flights of 1 and 2 January 2013"
    return curves(title, words, [Curve("flights held", held), Curve("hours that are whole", whole)])


if __name__ == "__main__":
    main(Path(sys.argv[2]) if sys.argv[1:2] == ["--out"] else None)
