"""Measures the latency of rule-based card alerts from topic to topic: record at a time and micro-batches.

Each mode must emit every alert that plain Python finds, exactly once.
`python -m tests.benchmarks.bench_record_at_a_time [--rate N] [--seconds N] [--out PICTURE.svg]`.
"""

import argparse
import statistics
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tests.benchmarks.record_at_a_time import (
    WARM_UP_PAYMENTS,
    AlertRelay,
    compute_latencies,
    count_expected_alerts,
    latency_at_percentile,
    render_latency_curves,
    run_both_modes,
)
from tests.benchmarks.rivals import open_scene


def measure_modes(rate: float, seconds: float) -> dict[str, list[float]]:
    """Run both modes, and return the latencies of each after a warm-up.

    Raises AssertionError if a mode emitted other alerts than expected.
    """
    with open_scene() as scene:
        alerts_by_mode = run_both_modes(
            AlertRelay(scene.session, scene.broker, scene.new_folder("relay")), rate, seconds
        )
    for mode, alerts in alerts_by_mode.items():
        emitted = Counter(alert["payment"] for alert, _ in alerts)
        assert emitted == count_expected_alerts(WARM_UP_PAYMENTS + round(rate * seconds)), mode
    return {mode: compute_latencies(alerts) for mode, alerts in alerts_by_mode.items()}


def main(rate: float, seconds: float, out: Path | None) -> None:
    """Print a row for each mode, and draw a chart of both."""
    latencies_by_mode = measure_modes(rate, seconds)
    table = Table(
        "mode", "p50, ms", "p90, ms", "p99, ms", "alerts", title=f"{rate:g} payments/s for {seconds:g} s"
    )
    for mode, latencies in latencies_by_mode.items():
        row = (f"{latency_at_percentile(latencies, share):.0f}" for share in (50, 90, 99))
        table.add_row(mode, *row, f"{len(latencies):,}")
    Console().print(table)
    medians = [statistics.median(latencies) for latencies in latencies_by_mode.values()]
    Console().print(f"median latency of record at a time: {medians[0] / medians[1]:.2f} of micro-batches")
    if out is not None:
        out.write_text(render_latency_curves(latencies_by_mode), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200, help="payments per second")
    parser.add_argument("--seconds", type=float, default=30, help="seconds after the warm-up")
    parser.add_argument("--out", type=Path, metavar="PICTURE.svg", help="file for a chart of the results")
    arguments = parser.parse_args()
    main(arguments.rate, arguments.seconds, arguments.out)
