"""Hypothesis strategies for plans and for the batches of a run."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.conformance.reference import InputBatch, InputRecord
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.collect import Collect
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.first import First
from penstock.engine.aggregates.last import Last
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.min import Min
from penstock.engine.aggregates.sum import Sum
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.definition.predicates import Comparison
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.triggers.after_all import AfterAll
from penstock.engine.triggers.after_any import AfterAny
from penstock.engine.triggers.after_count import AfterCount
from penstock.engine.triggers.after_each import AfterEach
from penstock.engine.triggers.after_processing_time import AfterProcessingTime
from penstock.engine.triggers.after_punctuation import AfterPunctuation
from penstock.engine.triggers.after_watermark import AfterWatermark
from penstock.engine.triggers.default import Default
from penstock.engine.triggers.every import Every
from penstock.engine.triggers.or_finally import OrFinally
from penstock.engine.triggers.repeatedly import Repeatedly
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.calendar import Calendar
from penstock.engine.windows.count_policy import CountPolicy
from penstock.engine.windows.delta_policy import DeltaPolicy
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.punctuation_policy import PunctuationPolicy
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding
from penstock.engine.windows.sliding_order import SlidingOrder
from penstock.engine.windows.time_policy import TimePolicy
from penstock.engine.windows.tumbling import Tumbling
from penstock.engine.windows.window import Window

SOURCE = "records"
COLUMNS = (
    Column("key", "string"),
    Column("value", "long"),
    Column("at", "timestamp"),
    Column("last", "boolean"),
)
OUTPUTS = (
    AggregateOutput("count", Count()),
    AggregateOutput("sum", Sum("value")),
    AggregateOutput("mean", Mean("value")),
    AggregateOutput("least", Min("value")),
    AggregateOutput("greatest", Max("value")),
    AggregateOutput("first", First("value")),
    AggregateOutput("final_value", Last("value")),
    AggregateOutput("different", Distinct("value")),
    AggregateOutput("best", TopN("value", 2)),
    AggregateOutput("all", Collect("value")),
)

seconds = st.integers(1, 30).map(lambda s: s * 1_000)
event_windows = st.one_of(
    st.builds(Fixed, seconds),
    st.builds(Sliding, seconds, seconds),
    st.builds(Sessions, seconds),
    st.builds(Calendar, st.just("day"), st.sampled_from(["UTC", "Europe/Berlin"])),
    st.just(Global()),
)
processing_windows = st.one_of(
    st.builds(Fixed, seconds, time=st.just("processing")),
    st.builds(Sliding, seconds, seconds, time=st.just("processing")),
)
counts = st.builds(CountPolicy, st.integers(1, 4))
deltas = st.builds(DeltaPolicy, st.just("value"), st.integers(0, 5))
elapses = st.builds(TimePolicy, seconds)
MARKED = Comparison("last", "=", value=True)
order_windows = st.one_of(
    st.builds(Tumbling, st.one_of(counts, deltas, elapses, st.just(PunctuationPolicy(MARKED)))),
    st.builds(SlidingOrder, st.one_of(counts, deltas, elapses), st.one_of(counts, deltas, elapses)),
)

leaves = st.one_of(
    st.just(AfterWatermark()),
    st.just(Default()),
    st.builds(AfterCount, st.integers(1, 4)),
    st.builds(AfterProcessingTime, seconds),
    st.builds(Every, seconds),
    st.just(AfterPunctuation(MARKED)),
)


def composite_triggers(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
    """Triggers made of other triggers."""
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    finishing = st.lists(inner.filter(lambda trigger: trigger.can_finish), max_size=2)
    sequences = st.builds(lambda first, last: AfterEach((*first, last)), finishing, inner)
    optional = st.none() | inner
    return st.one_of(
        st.builds(AfterAny, several),
        st.builds(AfterAll, several),
        sequences,
        st.builds(OrFinally, inner, inner),
        st.builds(Repeatedly, inner),
        st.builds(AfterWatermark, optional, optional),
    )


triggers: st.SearchStrategy[Trigger] = st.recursive(leaves, composite_triggers, max_leaves=5)
lasting_triggers = triggers.map(lambda trigger: Repeatedly(trigger) if trigger.can_finish else trigger)
DEFAULT = Default()
NO_BOUND = WatermarkStrategy()
modes = st.sampled_from(["discarding", "accumulating", "retracting"])
watermarks = st.builds(
    WatermarkStrategy,
    st.integers(0, 5).map(lambda s: s * 1_000),
    st.none() | seconds,
    max_future_skew=st.none() | seconds,
)


def build_plan(
    window: Window, trigger: Trigger = DEFAULT, watermark: WatermarkStrategy = NO_BOUND, **options
) -> Plan:
    """Build a plan with one stage over one source."""
    source = PlanSource(SOURCE, TopicOrigin(SOURCE), COLUMNS, "at", watermark)
    defaults = {
        "aggregates": OUTPUTS,
        "key": ("key",),
        "may_finish": True,
        "sinks": (PaneLog("panes"),),
    } | options
    return Plan("random", (source,), (Stage("random", (SOURCE,), window, trigger=trigger, **defaults),))


@st.composite
def event_time_plans(draw: st.DrawFn, trigger: st.SearchStrategy[Trigger] = triggers) -> Plan:
    """Plans with event-time windows."""
    return build_plan(
        draw(event_windows),
        draw(trigger),
        draw(watermarks),
        lateness=draw(st.integers(0, 20)) * 1_000,
        accumulation=draw(modes),
        on_time_pane=draw(st.sampled_from(["always", "when_changed"])),
        final_pane=draw(st.sampled_from(["never", "when_changed", "always"])),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans with any window."""
    kind = draw(st.sampled_from(["event", "event", "event", "processing", "order"]))
    if kind == "event":
        return draw(event_time_plans())
    if kind == "processing":
        return build_plan(draw(processing_windows), draw(triggers), accumulation=draw(modes))
    return build_plan(draw(order_windows), watermark=draw(watermarks))


@dataclass(frozen=True)
class Arrival:
    """A record without an offset."""

    key: str
    value: int | None
    at: int
    last: bool
    partition: int


arrivals = st.builds(
    Arrival,
    st.sampled_from("ab"),
    st.none() | st.integers(-3, 9),
    st.integers(0, 60).map(lambda s: s * 500),
    st.booleans(),
    st.integers(0, 1),
)


def assign_offsets(arrivals_in_order: Sequence[Arrival]) -> list[InputRecord]:
    """Give records their offsets, in the order of arrival."""
    offsets = [0, 0]
    records = []
    for item in arrivals_in_order:
        fields = {"key": f"{item.key}{item.partition}", "value": item.value, "at": item.at, "last": item.last}
        records.append(InputRecord(SOURCE, item.partition, offsets[item.partition], fields))
        offsets[item.partition] += 1
    return records


PARTITIONS = frozenset({(SOURCE, 0), (SOURCE, 1)})


@st.composite
def runs(draw: st.DrawFn, ends: bool = True) -> list[InputBatch]:
    """Records in any order, split into batches with a rising clock. Some batches are ticks."""
    records = assign_offsets(draw(st.lists(arrivals, max_size=25)))
    batches: list[InputBatch] = []
    clock = draw(st.integers(0, 40)) * 1_000
    while records:
        size = draw(st.integers(0, 6))
        batches.append(InputBatch(len(batches), clock, tuple(records[:size]), PARTITIONS))
        records = records[size:]
        clock += draw(st.integers(0, 20)) * 500
    if ends:
        batches.append(InputBatch(len(batches), clock, partitions=PARTITIONS, is_last=True))
    return batches
