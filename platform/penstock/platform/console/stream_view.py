"""The view model of one stream: its figures, charts, account, panes, plan and history."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.engine.host.control import BatchRecord
from penstock.platform.console.formats import format_count, format_duration, format_rate, format_share
from penstock.platform.console.time_chart import ChartCurve, TimeChart, draw_time_chart
from penstock.platform.control.batch_history import sum_fates, sum_steps

CHART_STEPS = 60
MIN_STEP_MS = 1_000
FATE_LABELS: Mapping[str, str] = {
    "accepted": "folded into windows",
    "late": "late",
    "quarantined": "quarantined",
    "duplicate": "dropped as duplicate",
    "filtered": "filtered",
}


@dataclass(frozen=True)
class Fate:
    """What became of some of the records that were read."""

    name: str
    label: str
    records: int
    share: float | None


def list_fates(batches: Sequence[BatchRecord]) -> tuple[int, list[Fate]]:
    """Return how many records the batches read, and what became of them; the parts add up to the whole."""
    counts = sum_fates(batches)
    read = counts["read"]
    return read, [
        Fate(name, FATE_LABELS[name], counts[name], counts[name] / read if read else None)
        for name in RECORD_FATES
    ]


def draw_charts(batches: Sequence[BatchRecord], start_ms: int, end_ms: int) -> Iterator[TimeChart]:
    """Yield the charts of an interval. Steps that are not over yet are left out."""
    step_ms = max((end_ms - start_ms) // CHART_STEPS, MIN_STEP_MS)
    end_ms -= end_ms % step_ms
    start_ms = end_ms - (end_ms - start_ms) // step_ms * step_ms
    steps = list(sum_steps(batches, start_ms, end_ms, step_ms))
    times = [step.start_ms + step_ms for step in steps]
    yield draw_time_chart(
        "Records read", times, [ChartCurve("", [step.records_per_second for step in steps])], _format_rate
    )
    p50 = ChartCurve("p50", [step.batch_ms_p50 for step in steps])
    p99 = ChartCurve("p99", [step.batch_ms_p99 for step in steps])
    yield draw_time_chart("Batch time", times, [p50, p99], format_duration)
    lag = ChartCurve("", [step.lag_records for step in steps])
    yield draw_time_chart("Consumer lag, in records", times, [lag], format_count)
    delay = ChartCurve("", [step.watermark_delay_ms for step in steps])
    yield draw_time_chart("Watermark delay", times, [delay], format_duration)
    late = ChartCurve("late", [step.late_share for step in steps])
    invalid = ChartCurve("invalid", [step.invalid_share for step in steps])
    yield draw_time_chart("Late and invalid records", times, [late, invalid], format_share)
    rows = ChartCurve("", [step.state_rows for step in steps])
    yield draw_time_chart("Rows of state", times, [rows], format_count)


def _format_rate(per_second: float | None) -> str:
    return format_rate(per_second, " /s")
