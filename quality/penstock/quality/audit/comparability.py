"""Which results a recomputation must give again, said from the plan alone; what cannot be compared is named."""

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.history.batch_history import has_time_policy
from penstock.engine.operators.ordered.state_schema import WINDOW_NUMBER_FIELD
from penstock.engine.plan import (
    AfterCount,
    AfterWatermark,
    ApplyStep,
    ArrowStep,
    Calendar,
    Deduplication,
    Default,
    Fixed,
    Global,
    Plan,
    Quantiles,
    Repeatedly,
    RowFunctionStep,
    Sessions,
    Sliding,
    SlidingOrder,
    SqlStep,
    Stage,
    StatefulFunction,
    Step,
    Tumbling,
    Window,
)
from penstock.engine.plan.windows import is_processing_time
from penstock.quality.audit.result_comparison import TableComparison
from penstock.quality.audit.table_reads import to_milliseconds

ROW_MULTIPLYING_SQL = re.compile("explode|inline|stack|json_tuple|lateral|join|union", re.IGNORECASE)
"""Words without which SQL makes one row of a row at most."""
MONTH_MS = 31 * 86_400_000
MAX_CALENDAR_WINDOW_MS = {
    "day": 25 * 3_600_000,
    "week": 7 * 86_400_000 + 3_600_000,
    "month": MONTH_MS + 3_600_000,
}


@dataclass(frozen=True)
class Sample:
    """Which results are computed again: a share of the keys, windows in [start, end), or both."""

    key_share: float = 1.0
    start: int | None = None
    end: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether nothing is left out."""
        return self == Sample()


def explain_batch_dependence(plan: Plan) -> str | None:
    """Say why results depend on how records were cut into batches; None where the records alone decide them."""
    if len(plan.stages) > 1:
        return "it has several stages, and a later one goes by what the one before it showed when"
    stage = plan.only_stage
    if stage.join is not None:
        return "its rows are pairs, of which a window may have any number"
    if isinstance(stage.window, StatefulFunction):
        return "its function is asked batch by batch"
    if is_processing_time(stage.window) or has_time_policy(stage.window):
        return "its windows are cut by the clock"
    if isinstance(stage.window, Global):
        return "its window is never over"
    if stage.accumulation == "discarding":
        return "its panes are parts of a result"
    if not has_order_windows(stage) and not has_complete_panes(stage):
        return "its trigger may leave elements unshown when a window closes"
    for source in plan.sources:
        if source.deduplication is not None and is_dedup_horizon_short(stage, source.deduplication):
            return f"repeats of {source.name} are forgotten before their windows close"
    return None


def explain_unsampleable(plan: Plan, sample: Sample) -> str | None:
    """Say why a sample cannot be taken; None where it can."""
    if explain_batch_dependence(plan):
        return None  # whoever runs the batches again says it
    if sample.key_share < 1 and not plan.only_stage.key:
        return "it has no key of which a share could be taken"
    if has_order_windows(plan.only_stage) and (sample.start, sample.end) != (None, None):
        return "its windows are cut by the order of records: take a share of the keys instead"
    return None


def has_order_windows(stage: Stage) -> bool:
    """Tell whether windows are cut by the order of records; every one that was shown is over."""
    return isinstance(stage.window, Tumbling | SlidingOrder)


def can_multiply_records(stage: Stage) -> bool:
    """Tell whether a step may make several rows of a record, as far as the plan says it without Spark."""
    return any(_can_multiply(step) for step in stage.steps)


def _can_multiply(step: Step) -> bool:
    match step:
        case SqlStep(text):
            return ROW_MULTIPLYING_SQL.search(text) is not None
        case RowFunctionStep():
            return step.many
        case _:
            return isinstance(step, ApplyStep | ArrowStep)


def has_complete_panes(stage: Stage) -> bool:
    """Tell whether nothing that was folded is left unshown when a window closes."""
    match stage.trigger:
        case Default() | AfterWatermark(late=None) | Repeatedly(AfterWatermark(None, None) | AfterCount(1)):
            return True
        case AfterWatermark():
            return stage.final_pane != "never" or stage.lateness == 0
        case _:
            return stage.final_pane != "never"


def is_dedup_horizon_short(stage: Stage, rule: Deduplication) -> bool:
    """Tell whether a repeat may come to a window when its first record is no longer remembered."""
    if has_order_windows(stage):
        return True
    return rule.within < max_window_reach_ms(stage.window) + stage.lateness


def max_window_reach_ms(window: Window) -> int:
    """Return how far a window's end may lie behind the time of a record in it."""
    match window:
        case Fixed(size) | Sliding(size):
            return size
        case Sessions(gap):
            return gap
        case Calendar(unit):
            return MAX_CALENDAR_WINDOW_MS[unit]
        case _:
            raise TypeError(f"{window} is not decided by the time of a record")


def comparison_for(stage: Stage, table: str) -> TableComparison:
    """Return what names a row of a stage's table, and what must be the same; sketches that toss coins are not."""
    values = [output.name for output in stage.aggregates if not isinstance(output.aggregate, Quantiles)]
    if has_order_windows(stage):
        return TableComparison(
            table, [*stage.key, WINDOW_NUMBER_FIELD.name], [*values, "records", "window_start", "window_end"]
        )
    return TableComparison(table, [*stage.key, "window_start", "window_end"], [*values, "records"])


def filter_final_windows(rows: pa.Table, stage: Stage, watermark: int | None, sample: Sample) -> pa.Table:
    """Return the rows of windows that are over by a watermark, and that lie where a sample asks for."""
    if has_order_windows(stage):
        return rows
    if watermark is None:
        return rows.slice(0, 0)
    start, end = (to_milliseconds(rows.column(name)) for name in ("window_start", "window_end"))
    is_final = pc.less_equal(end, watermark - stage.lateness)
    if sample.start is not None:
        # A session that begins within a gap of the sample's begin may have begun before it.
        earliest_start = sample.start + (stage.window.gap + 1 if isinstance(stage.window, Sessions) else 0)
        is_final = pc.and_(is_final, pc.greater_equal(start, earliest_start))
    if sample.end is not None:
        is_final = pc.and_(is_final, pc.less_equal(end, sample.end))
    return rows.filter(is_final)
