"""Decides from the plan which results a recomputation must reproduce, and why others cannot be compared."""

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.operators.ordered.state_schema import WINDOW_NUMBER_FIELD
from penstock.engine.plan.sources import Deduplication
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import ApplyStep, ArrowStep, RowFunctionStep, SqlStep, Step
from penstock.engine.windows.order_window import OrderWindow
from penstock.quality.audit.result_comparison import TableComparison
from penstock.quality.table_reads import to_milliseconds

ROW_MULTIPLYING_SQL = re.compile("explode|inline|stack|json_tuple|lateral|join|union", re.IGNORECASE)
"""Words without which SQL makes at most one row of a row."""


@dataclass(frozen=True)
class Sample:
    """The results to recompute: a share of the keys, windows in [start, end), or both."""

    key_share: float = 1.0
    start: int | None = None
    end: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether the sample includes everything."""
        return self == Sample()


def explain_batch_dependence(plan: Plan) -> str | None:
    """Explain why results depend on the division into batches; None if they depend on the records alone."""
    if len(plan.stages) > 1:
        return "it has several stages, and a later stage depends on when the earlier one emits"
    stage = plan.only_stage
    if stage.join is not None:
        return "a window of its join may have any number of rows"
    if isinstance(stage.window, StatefulFunction):
        return "its stateful function runs once per batch"
    if stage.window.uses_processing_time or stage.window.is_batch_dependent:
        return "its windows depend on processing time"
    if stage.window.never_ends:
        return "its window never ends"
    if stage.accumulation == "discarding":
        return "its panes are partial results"
    if not has_order_windows(stage) and not has_complete_panes(stage):
        return "its trigger may omit elements when a window closes"
    for source in plan.sources:
        if source.deduplication is not None and is_dedup_horizon_short(stage, source.deduplication):
            return f"duplicates of {source.name} expire before their windows close"
    return None


def explain_unsampleable(plan: Plan, sample: Sample) -> str | None:
    """Explain why a sample is not possible; return None if it is."""
    if explain_batch_dependence(plan):
        return None  # check_replayed_batches reports it
    if sample.key_share < 1 and not plan.only_stage.key:
        return "it has no key that could be sampled"
    if has_order_windows(plan.only_stage) and (sample.start, sample.end) != (None, None):
        return "its windows depend on the order of records; sample with --keys instead"
    return None


def has_order_windows(stage: Stage) -> bool:
    """Tell whether windows depend on the order of records. Such a window is final when it is emitted."""
    return isinstance(stage.window, OrderWindow)


def can_multiply_records(stage: Stage) -> bool:
    """Tell whether a step may make several rows of a record, as far as the plan shows it."""
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
    """Tell whether the last pane of a window contains all of its elements."""
    is_on_time_pane_last = stage.trigger.fires_at_end and stage.lateness == 0
    return stage.trigger.shows_all_elements or stage.final_pane != "never" or is_on_time_pane_last


def is_dedup_horizon_short(stage: Stage, rule: Deduplication) -> bool:
    """Tell whether a duplicate may reach a window after the first record was forgotten."""
    if has_order_windows(stage):
        return True
    reach_ms = stage.window.max_reach_ms
    return reach_ms is None or rule.within < reach_ms + stage.lateness


def comparison_for(stage: Stage, table: str) -> TableComparison:
    """Return the columns that identify a row of a stage's table, and those that must be equal.

    Values that are not reproducible are not compared.
    """
    values = [output.name for output in stage.aggregates if output.aggregate.is_reproducible]
    if has_order_windows(stage):
        return TableComparison(
            table, [*stage.key, WINDOW_NUMBER_FIELD.name], [*values, "records", "window_start", "window_end"]
        )
    return TableComparison(table, [*stage.key, "window_start", "window_end"], [*values, "records"])


def filter_final_windows(rows: pa.Table, stage: Stage, watermark: int | None, sample: Sample) -> pa.Table:
    """Return the rows of windows that are final by a watermark and inside of the sample."""
    if has_order_windows(stage):
        return rows
    if watermark is None:
        return rows.slice(0, 0)
    start, end = (to_milliseconds(rows.column(name)) for name in ("window_start", "window_end"))
    is_final = pc.less_equal(end, watermark - stage.lateness)
    if sample.start is not None:
        # A session that starts within a gap of the sample's start may extend to before it.
        merge_gap = stage.window.merge_gap
        earliest_start = sample.start + (0 if merge_gap is None else merge_gap + 1)
        is_final = pc.and_(is_final, pc.greater_equal(start, earliest_start))
    if sample.end is not None:
        is_final = pc.and_(is_final, pc.less_equal(end, sample.end))
    return rows.filter(is_final)
