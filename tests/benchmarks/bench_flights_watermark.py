"""Measures completeness and delay of on-time panes by max out-of-orderness, with two days of real flights.

The shipped pipeline `flight_delays` runs once for each max out-of-orderness. For each airport and hour, the
benchmark measures the share of flights in the on-time pane, and the time from the end of the hour to that pane.
`python -m tests.benchmarks.bench_flights_watermark [--out PICTURE.svg]`.
"""

import argparse
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
    """The results for one bound: delays in minutes, and shares of flights and hours."""

    bound: int
    median_delay: float
    mean_delay: float
    longest_delay: float
    included_flights: float
    complete_hours: float
    late_panes: int


def summarize_bound(bound: int, result: DemoResult) -> BoundResult:
    """Compare the on-time pane of each window with its last pane."""
    inserted = [row for row in result.run_data.pane_rows if row["kind"] == "insert"]
    last = {(row["origin"], row["window_start"]): row["flights"] for row in inserted}
    on_time = [row for row in inserted if row["timing"] == "on_time" and row["watermark"] is not None]
    delays = [(row["batch_clock"] - row["window_end"]).total_seconds() / 60 for row in on_time]
    shares = [row["flights"] / last[row["origin"], row["window_start"]] for row in on_time]
    return BoundResult(
        bound,
        statistics.median(delays),
        statistics.mean(delays),
        max(delays),
        statistics.mean(shares),
        sum(share == 1 for share in shares) / len(shares),
        sum(row["timing"] == "late" for row in inserted),
    )


def main(out: Path | None) -> None:
    """Run the pipeline with each bound, with one broker and one session."""
    settings = load_settings().settings
    results: list[BoundResult] = []
    plan = catalog.load_plan("flight_delays")
    with (
        tempfile.TemporaryDirectory() as folder,
        LocalBroker.in_directory(Path(folder, "broker"), ensure_jars(settings.jars, ["kafka"])) as broker,
        open_command_spark(settings, "flights") as session,
    ):
        for bound in BOUNDS_MINUTES:
            (source,) = plan.sources
            strategy = replace(source.watermark, max_out_of_orderness=bound * MINUTE_MS)
            stage = replace(plan.only_stage, name=f"bound_{bound}")
            changed = replace(
                plan, name=stage.name, sources=(replace(source, watermark=strategy),), stages=(stage,)
            )
            result = run_demo_plan(
                changed, FLIGHTS_DEMO, session, broker.bootstrap, Path(folder, str(bound)), lambda _: None
            )
            results.append(summarize_bound(bound, result))
            print(f"bound of {bound} minutes: {len(result.outcomes)} batches", file=sys.stderr)
    print_results(results)
    if out is not None:
        out.write_text(draw_results(results), "utf-8")


def print_results(results: Sequence[BoundResult]) -> None:
    """Print a row for each bound."""
    table = Table(
        "max out-of-orderness, min",
        "delay p50, min",
        "mean",
        "longest",
        "flights included",
        "complete hours",
        "late panes",
    )
    for result in results:
        minutes = (result.median_delay, result.mean_delay, result.longest_delay)
        shares = (result.included_flights, result.complete_hours)
        cells = (*(f"{value:.0f}" for value in minutes), *(f"{share:.1%}" for share in shares))
        table.add_row(str(result.bound), *cells, str(result.late_panes))
    Console().print(table)


def draw_results(results: Sequence[BoundResult]) -> str:
    """Draw completeness over latency."""
    flights = [
        CurvePoint(result.mean_delay, 100 * result.included_flights, f"{result.bound} min")
        for result in results
    ]
    hours = [
        CurvePoint(result.mean_delay, 100 * result.complete_hours, f"{result.bound} min")
        for result in results
    ]
    axis_labels = (
        "minutes from the end of an hour to its on-time pane (mean)",
        "percent, in the on-time pane",
    )
    title = "Completeness and delay by max out-of-orderness, flights of 1 and 2 January 2013"
    return render_curves(
        title, axis_labels, [Curve("flights included", flights), Curve("complete hours", hours)]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, metavar="PICTURE.svg", help="file for a chart of the results")
    arguments = parser.parse_args()
    main(arguments.out)
