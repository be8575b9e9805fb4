"""Random stages and random histories, small enough that windows, keys and timers interact."""

from hypothesis import strategies as st

from penstock.conformance.reference import InputBatch, InputRecord
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.min import Min
from penstock.engine.aggregates.sum import Sum
from penstock.engine.definition.predicates import Comparison
from penstock.engine.plan.stages import Stage
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
from penstock.engine.windows.fixed import Fixed
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.sessions import Sessions
from penstock.engine.windows.sliding import Sliding

windows = st.one_of(
    st.builds(Fixed, st.integers(1, 12), st.just(0)),
    st.builds(lambda size, offset: Fixed(size, offset % size), st.integers(1, 12), st.integers(0, 11)),
    st.builds(lambda size, period, offset: Sliding(size, period, offset % period), *[st.integers(1, 9)] * 3),
    st.just(Global()),
    st.builds(Sessions, st.integers(1, 9)),
    st.builds(Sessions, st.integers(1, 9)),
    st.builds(lambda size: Fixed(size, time="processing"), st.integers(1, 9)),
    st.builds(lambda size, period: Sliding(size, period, time="processing"), *[st.integers(1, 7)] * 2),
    st.builds(Calendar, st.sampled_from(["day", "week", "month"]), st.sampled_from(["UTC", "Europe/Berlin"])),
)

leaf_triggers: st.SearchStrategy[Trigger] = st.one_of(
    st.builds(AfterCount, st.integers(1, 4)),
    st.builds(AfterProcessingTime, st.integers(0, 6)),
    st.builds(lambda period, offset: Every(period, offset % period), st.integers(1, 6), st.integers(0, 5)),
    st.just(AfterPunctuation(Comparison("value", ">", 3))),
    st.just(AfterWatermark()),
)


EACH_BATCH, AT_END = Repeatedly(AfterCount(1)), AfterWatermark()


def composite_triggers(triggers_in: st.SearchStrategy[Trigger]) -> st.SearchStrategy[Trigger]:
    parts = st.lists(triggers_in, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(AfterAny, parts),
        st.builds(AfterAll, parts),
        st.builds(_make_after_each, parts),
        st.builds(OrFinally, triggers_in, triggers_in),
        st.builds(OrFinally, st.builds(Repeatedly, triggers_in), triggers_in),
        st.builds(
            OrFinally, st.just(EACH_BATCH), st.builds(AfterAll, st.tuples(triggers_in, st.just(AT_END)))
        ),
        st.builds(lambda part: _make_after_each((part, AT_END)), triggers_in),
        st.builds(Repeatedly, triggers_in),
        st.builds(AfterWatermark, st.none() | triggers_in, st.none() | triggers_in),
        st.just(Default()),
    )


def _make_after_each(parts: tuple[Trigger, ...]) -> AfterEach:
    """Only the last part may repeat without end."""
    finite_parts = tuple(part for part in parts[:-1] if part.can_finish)
    return AfterEach((*finite_parts, parts[-1]))


triggers = st.recursive(leaf_triggers | st.just(Default()), composite_triggers, max_leaves=5)

aggregates = (
    AggregateOutput("n", Count()),
    AggregateOutput("present", Count("value")),
    AggregateOutput("total", Sum("value")),
    AggregateOutput("average", Mean("value")),
    AggregateOutput("least", Min("value")),
    AggregateOutput("most", Max("value")),
    AggregateOutput("last_word", Max("word")),
)

stages = st.builds(
    Stage,
    name=st.just("stage"),
    inputs=st.just(("records",)),
    window=windows,
    aggregates=st.just(aggregates),
    key=st.sampled_from([("key",), (), ("key", "word")]),
    trigger=triggers,
    lateness=st.sampled_from([0, 0, 3, 10, 10**12]),
    accumulation=st.sampled_from(["discarding", "accumulating", "retracting"]),
    on_time_pane=st.sampled_from(["always", "when_changed"]),
    final_pane=st.sampled_from(["never", "when_changed", "always"]),
    may_finish=st.just(value=True),
)

fields = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["a", "b", None]),
        "at": st.integers(0, 40),
        "value": st.none() | st.integers(-2, 5),
        "word": st.sampled_from(["x", "y", "", None]),
    }
)


@st.composite
def histories(draw: st.DrawFn) -> list[InputBatch]:
    """Batches with rising clocks and watermarks, some of them without records, sometimes with an end."""
    batches: list[InputBatch] = []
    clock, watermark, offsets = 0, 0, [0, 0]
    for number in range(draw(st.integers(1, 9))):
        clock += draw(st.integers(0, 5))
        watermark += draw(st.integers(0, 9))
        records = []
        for content in draw(st.lists(fields, max_size=6)):
            partition = draw(st.integers(0, 1))
            records.append(InputRecord("records", partition, offsets[partition], content))
            offsets[partition] += 1
        batches.append(InputBatch(number, clock, tuple(records), watermark=watermark))
    if draw(st.booleans()):
        batches.append(InputBatch(len(batches), clock + 1, is_last=True))
    return batches
