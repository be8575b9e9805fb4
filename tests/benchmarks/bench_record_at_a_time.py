"""Record at a time beside micro-batches: the latency of card alerts by rule, from topic to topic.

Each mode must emit the alerts that plain Python finds, once.
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
    """Run both modes, and return the latencies of each after a warm-up; AssertionError where alerts are wrong."""
    with open_scene() as one:
        found = run_both_modes(AlertRelay(one.session, one.broker, one.new_folder("relay")), rate, seconds)
    for mode, alerts in found.items():
        told = Counter(alert["payment"] for alert, _ in alerts)
        assert told == count_expected_alerts(WARM_UP_PAYMENTS + round(rate * seconds)), mode
    return {mode: compute_latencies(alerts) for mode, alerts in found.items()}


def main(rate: float, seconds: float, out: Path | None) -> None:
    """Print a row for each mode, and draw both."""
    took_by = measure_modes(rate, seconds)
    table = Table(
        "", "p50, ms", "p90, ms", "p99, ms", "alerts", title=f"{rate:g} payments/s for {seconds:g} s"
    )
    for mode, took in took_by.items():
        row = (f"{latency_at_percentile(took, share):.0f}" for share in (50, 90, 99))
        table.add_row(mode, *row, f"{len(took):,}")
    Console().print(table)
    medians = [statistics.median(took) for took in took_by.values()]
    Console().print(f"record at a time takes {medians[0] / medians[1]:.2f} of the time of micro-batches")
    if out is not None:
        out.write_text(render_latency_curves(took_by), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=float, default=200)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    main(chosen.rate, chosen.seconds, chosen.out)
