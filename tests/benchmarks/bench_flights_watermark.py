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

from penstock.engine.diagrams import Curve, CurvePoint, render_curves
from penstock.infra.jars import ensure_jars
from penstock.infra.local_broker import LocalBroker
from penstock.pipelines import catalog
from penstock.pipelines.demonstration import Demo
from penstock.platform.demo.demo_run import DemoResult, run_demo_plan
from penstock.platform.services.command_spark import open_command_spark
from penstock.platform.settings import load_settings

MINUTE_MS = 60_000
BOUNDS_MINUTES = (0, 20, 40, 60, 120, 240)
FLIGHTS_DEMO = Demo(last="2 days", step="20 minutes")


@dataclass(frozen=True)
class BoundResult:
    """What a bound comes to, in minutes and shares."""

    bound: int
    middle: float
    mean: float
    slowest: float
    complete: float
    whole: float
    corrections: int


def summarize_bound(bound: int, ran: DemoResult) -> BoundResult:
    """Compare the on-time pane of each window with its last one."""
    inserted = [row for row in ran.run_data.pane_rows if row["kind"] == "insert"]
    last = {(row["origin"], row["window_start"]): row["flights"] for row in inserted}
    on_time = [row for row in inserted if row["timing"] == "on_time" and row["watermark"] is not None]
    waits = [(row["batch_clock"] - row["window_end"]).total_seconds() / 60 for row in on_time]
    shares = [row["flights"] / last[row["origin"], row["window_start"]] for row in on_time]
    return BoundResult(
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
    found: list[BoundResult] = []
    plan = catalog.load_plan("flight_delays")
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalBroker.in_directory(Path(folder, "broker"), ensure_jars(settings.jars, ["kafka"])) as broker,
        open_command_spark(settings, "flights") as session,
    ):
        for bound in BOUNDS_MINUTES:
            (source,) = plan.sources
            rule = replace(source.watermark, max_out_of_orderness=bound * MINUTE_MS)
            named = replace(plan.only_stage, name=f"bound_{bound}")
            changed = replace(
                plan, name=named.name, sources=(replace(source, watermark=rule),), stages=(named,)
            )
            ran = run_demo_plan(
                changed, FLIGHTS_DEMO, session, broker.bootstrap, Path(folder, str(bound)), lambda _: None
            )
            found.append(summarize_bound(bound, ran))
            print(f"a bound of {bound} minutes: {len(ran.outcomes)} batches", file=sys.stderr)
    print_results(found)
    if out is not None:
        out.write_text(draw_results(found), "utf-8")


def print_results(found: Sequence[BoundResult]) -> None:
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


def draw_results(found: Sequence[BoundResult]) -> str:
    """Draw completeness over latency."""
    held = [CurvePoint(each.mean, 100 * each.complete, f"{each.bound} min") for each in found]
    whole = [CurvePoint(each.mean, 100 * each.whole, f"{each.bound} min") for each in found]
    words = ("minutes from the end of an hour to its on-time pane (mean)", "percent, by the on-time pane")
    title = "Watermark bound: what waiting buys, on the flights of 1 and 2 January 2013"
    return render_curves(title, words, [Curve("flights held", held), Curve("hours that are whole", whole)])


if __name__ == "__main__":
    main(Path(sys.argv[2]) if sys.argv[1:2] == ["--out"] else None)
