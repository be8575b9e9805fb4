"""The watermark of several inputs, batch by batch, against the reference evaluator."""

from dataclasses import replace
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipelines.strategies import SOURCE, plan_of

from penstock.pipelines.batch.inputs import Reached, rules_of
from penstock.pipelines.fold.watermark import Watermark
from penstock.pipelines.plan import Fixed, Plan, Topic, WatermarkRule
from penstock.pipelines.reference import Batch, Evaluator, Record
from penstock.pipelines.state.columns import BEFORE_ALL

OTHER = "others"
PARTITIONS = [(SOURCE, 0), (SOURCE, 1), (OTHER, 0)]
rules = st.builds(
    lambda bound, idle, follows: WatermarkRule(bound, idle, follows and idle is not None),
    st.sampled_from([0, 5]),
    st.sampled_from([None, 20]),
    st.booleans(),
)
times = st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 100), max_size=3)
unread = st.frozensets(st.sampled_from(PARTITIONS))
batches = st.lists(st.tuples(st.integers(0, 15), times, unread), min_size=1, max_size=12)
Ran = list[tuple[int, dict[tuple[str, int], int], frozenset[tuple[str, int]]]]


def plan_over(first: WatermarkRule, second: WatermarkRule) -> Plan:
    plan = plan_of(Fixed(10), rule=first)
    (source,) = plan.sources
    source = replace(source, origin=Topic(SOURCE))
    other = replace(source, name=OTHER, origin=Topic(OTHER), watermark=second)
    stage = replace(plan.stage, inputs=(SOURCE, OTHER))
    return replace(plan, sources=(source, other), stages=(stage,))


@settings(deadline=None)
@given(rules, rules, batches)
def test_it_is_the_lowest_of_what_each_input_reached(
    first: WatermarkRule, second: WatermarkRule, ran: Ran
) -> None:
    plan = plan_over(first, second)
    evaluator, reached, clock = Evaluator(plan), Reached(Watermark(), {}), 0
    known = [f"{topic}/{partition}" for topic, partition in PARTITIONS]
    for number, (later, newest, waited) in enumerate(ran):
        clock += later
        records = tuple(
            Record(topic, partition, number, {"key": "k", "value": 1, "at": time})
            for (topic, partition), time in newest.items()
        )
        outcome = evaluator.run(Batch(number, clock, records, frozenset(PARTITIONS), unread=waited))
        named = {f"{topic}/{partition}": time for (topic, partition), time in newest.items()}
        reached = reached.unread([f"{topic}/{partition}" for topic, partition in waited], clock)
        reached = reached.advance(rules_of(plan.sources), known, named, clock)
        value = reached.stream.value
        assert (-inf if value == BEFORE_ALL else value) == outcome.watermark


def test_one_silent_input_holds_the_stream_where_it_is() -> None:
    plan = plan_over(WatermarkRule(), WatermarkRule())
    reached = Reached(Watermark(), {})
    known = [f"{SOURCE}/0", f"{OTHER}/0"]
    reached = reached.advance(rules_of(plan.sources), known, {f"{SOURCE}/0": 70, f"{OTHER}/0": 30}, 0)
    reached = reached.advance(rules_of(plan.sources), known, {f"{SOURCE}/0": 90}, 0)
    assert (reached.stream.value, reached.inputs) == (30, {SOURCE: 90, OTHER: 30})
