"""Random plans and random runs, for all that must hold whatever is written and whatever arrives."""

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from penstock.conformance.reference import InputBatch, InputRecord
from penstock.engine.plan import (
    AfterAll,
    AfterAny,
    AfterCount,
    AfterEach,
    AfterProcessingTime,
    AfterPunctuation,
    AfterWatermark,
    AggregateOutput,
    Calendar,
    Collect,
    Column,
    Comparison,
    Count,
    CountPolicy,
    Default,
    DeltaPolicy,
    Distinct,
    Every,
    First,
    Fixed,
    Global,
    Last,
    Max,
    Mean,
    Min,
    OrFinally,
    Plan,
    PlanSource,
    PunctuationPolicy,
    Repeatedly,
    Sessions,
    Sliding,
    SlidingOrder,
    Stage,
    Sum,
    TimePolicy,
    TopicOrigin,
    TopN,
    Trigger,
    Tumbling,
    WatermarkStrategy,
    Window,
)
from penstock.engine.sinks.pane_log import PaneLog

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


def composites(inner: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
    """Triggers made of others."""
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    finishing = st.lists(inner.filter(lambda trigger: trigger.can_finish), max_size=2)
    in_turn = st.builds(lambda first, last: AfterEach((*first, last)), finishing, inner)
    maybe = st.none() | inner
    return st.one_of(
        st.builds(AfterAny, some),
        st.builds(AfterAll, some),
        in_turn,
        st.builds(OrFinally, inner, inner),
        st.builds(Repeatedly, inner),
        st.builds(AfterWatermark, maybe, maybe),
    )


triggers: st.SearchStrategy[Trigger] = st.recursive(leaves, composites, max_leaves=5)
lasting_triggers = triggers.map(lambda trigger: Repeatedly(trigger) if trigger.can_finish else trigger)
DEFAULT = Default()
NO_BOUND = WatermarkStrategy()
modes = st.sampled_from(["discarding", "accumulating", "retracting"])
rules = st.builds(
    WatermarkStrategy,
    st.integers(0, 5).map(lambda s: s * 1_000),
    st.none() | seconds,
    max_future_skew=st.none() | seconds,
)


def plan_of(
    window: Window, trigger: Trigger = DEFAULT, rule: WatermarkStrategy = NO_BOUND, **answers
) -> Plan:
    """A plan with one stage over one source."""
    source = PlanSource(SOURCE, TopicOrigin(SOURCE), COLUMNS, "at", rule)
    given = {
        "aggregates": OUTPUTS,
        "key": ("key",),
        "may_finish": True,
        "sinks": (PaneLog("panes"),),
    } | answers
    return Plan("random", (source,), (Stage("random", (SOURCE,), window, trigger=trigger, **given),))


@st.composite
def event_time_plans(draw: st.DrawFn, trigger: st.SearchStrategy[Trigger] = triggers) -> Plan:
    """Plans over windows of event time, with anything else as it comes."""
    return plan_of(
        draw(event_windows),
        draw(trigger),
        draw(rules),
        lateness=draw(st.integers(0, 20)) * 1_000,
        accumulation=draw(modes),
        on_time_pane=draw(st.sampled_from(["always", "when_changed"])),
        final_pane=draw(st.sampled_from(["never", "when_changed", "always"])),
    )


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Plans over any window."""
    kind = draw(st.sampled_from(["event", "event", "event", "processing", "order"]))
    if kind == "event":
        return draw(event_time_plans())
    if kind == "processing":
        return plan_of(draw(processing_windows), draw(triggers), accumulation=draw(modes))
    return plan_of(draw(order_windows), rule=draw(rules))


@dataclass(frozen=True)
class Arrival:
    """A record before it has an address."""

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


def addressed(arriving: Sequence[Arrival]) -> list[InputRecord]:
    """Give records their offsets, in the order in which they come."""
    offsets = [0, 0]
    records = []
    for item in arriving:
        fields = {"key": f"{item.key}{item.partition}", "value": item.value, "at": item.at, "last": item.last}
        records.append(InputRecord(SOURCE, item.partition, offsets[item.partition], fields))
        offsets[item.partition] += 1
    return records


PARTITIONS = frozenset({(SOURCE, 0), (SOURCE, 1)})


@st.composite
def runs(draw: st.DrawFn, ends: bool = True) -> list[InputBatch]:
    """Records in some order, cut into batches somewhere, under a clock that goes on; ticks among them."""
    records = addressed(draw(st.lists(arrivals, max_size=25)))
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
