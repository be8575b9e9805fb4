"""Which results a recomputation must give again, said from the plan alone; what cannot be compared is named."""

import re
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.order.slots import NUMBER
from penstock.pipelines.plan import (
    AfterCount,
    AfterWatermark,
    Apply,
    Calendar,
    Deduplication,
    Default,
    Fixed,
    Global,
    OverArrow,
    PerRow,
    Plan,
    Quantiles,
    Remembering,
    Repeatedly,
    Sessions,
    Sliding,
    SlidingOrder,
    Sql,
    Stage,
    Step,
    Tumbling,
    Window,
)
from penstock.pipelines.plan.windows import by_processing_time
from penstock.pipelines.spark.recorded import has_time_policy
from penstock.quality.audit.results import Compared
from penstock.quality.audit.tables import milliseconds

MULTIPLYING = re.compile("explode|inline|stack|json_tuple|lateral|join|union", re.IGNORECASE)
"""Words without which SQL makes one row of a row at most."""
MONTH_MS = 31 * 86_400_000
LONGEST = {"day": 25 * 3_600_000, "week": 7 * 86_400_000 + 3_600_000, "month": MONTH_MS + 3_600_000}


@dataclass(frozen=True)
class Sample:
    """Which results are computed again: a share of the keys, windows in [start, end), or both."""

    keys: float = 1.0
    start: int | None = None
    end: int | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return self == Sample()


def by_batch(plan: Plan) -> str | None:
    """Say why results depend on how records were cut into batches; None where the records alone decide them."""
    if len(plan.stages) > 1:
        return "it has several stages, and a later one goes by what the one before it showed when"
    stage = plan.stage
    if stage.join is not None:
        return "its rows are pairs, of which a window may have any number"
    if isinstance(stage.window, Remembering):
        return "its function is asked batch by batch"
    if by_processing_time(stage.window) or has_time_policy(stage.window):
        return "its windows are cut by the clock"
    if isinstance(stage.window, Global):
        return "its window is never over"
    if stage.accumulation == "discarding":
        return "its panes are parts of a result"
    if not in_order(stage) and not shows_all(stage):
        return "its trigger may leave elements unshown when a window closes"
    for source in plan.sources:
        if source.deduplication is not None and forgets_too_soon(stage, source.deduplication):
            return f"repeats of {source.name} are forgotten before their windows close"
    return None


def no_sample(plan: Plan, sample: Sample) -> str | None:
    """Say why a sample cannot be taken; None where it can."""
    if by_batch(plan):
        return None  # whoever runs the batches again says it
    if sample.keys < 1 and not plan.stage.key:
        return "it has no key of which a share could be taken"
    if in_order(plan.stage) and (sample.start, sample.end) != (None, None):
        return "its windows are cut by the order of records: take a share of the keys instead"
    return None


def in_order(stage: Stage) -> bool:
    """Tell whether windows are cut by the order of records; every one that was shown is over."""
    return isinstance(stage.window, Tumbling | SlidingOrder)


def may_multiply(stage: Stage) -> bool:
    """Tell whether a step may make several rows of a record, as far as the plan says it without Spark."""
    return any(_multiplies(step) for step in stage.steps)


def _multiplies(step: Step) -> bool:
    match step:
        case Sql(text):
            return MULTIPLYING.search(text) is not None
        case PerRow():
            return step.many
        case _:
            return isinstance(step, Apply | OverArrow)


def shows_all(stage: Stage) -> bool:
    """Tell whether nothing that was folded is left unshown when a window closes."""
    match stage.trigger:
        case Default() | AfterWatermark(late=None) | Repeatedly(AfterWatermark(None, None) | AfterCount(1)):
            return True
        case AfterWatermark():
            return stage.final_pane != "never" or stage.lateness == 0
        case _:
            return stage.final_pane != "never"


def forgets_too_soon(stage: Stage, rule: Deduplication) -> bool:
    """Tell whether a repeat may come to a window when its first record is no longer remembered."""
    if in_order(stage):
        return True
    return rule.horizon < longest(stage.window) + stage.lateness


def longest(window: Window) -> int:
    """Return how far a window's end may lie behind the time of a record in it."""
    match window:
        case Fixed(size) | Sliding(size):
            return size
        case Sessions(gap):
            return gap
        case Calendar(unit):
            return LONGEST[unit]
        case _:
            raise TypeError(f"{window} is not decided by the time of a record")


def compared(stage: Stage, table: str) -> Compared:
    """Return what names a row of a stage's table, and what must be the same; sketches that toss coins are not."""
    values = [output.name for output in stage.aggregates if not isinstance(output.of, Quantiles)]
    if in_order(stage):
        return Compared(table, [*stage.key, NUMBER.name], [*values, "records", "window_start", "window_end"])
    return Compared(table, [*stage.key, "window_start", "window_end"], [*values, "records"])


def settled(rows: pa.Table, stage: Stage, watermark: int | None, sample: Sample) -> pa.Table:
    """Return the rows of windows that are over by a watermark, and that lie where a sample asks for."""
    if in_order(stage):
        return rows
    if watermark is None:
        return rows.slice(0, 0)
    start, end = (milliseconds(rows.column(name)) for name in ("window_start", "window_end"))
    over = pc.less_equal(end, watermark - stage.lateness)
    if sample.start is not None:
        # A session that begins within a gap of the sample's begin may have begun before it.
        edge = sample.start + (stage.window.gap + 1 if isinstance(stage.window, Sessions) else 0)
        over = pc.and_(over, pc.greater_equal(start, edge))
    if sample.end is not None:
        over = pc.and_(over, pc.less_equal(end, sample.end))
    return rows.filter(over)
