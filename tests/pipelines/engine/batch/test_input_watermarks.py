"""The watermark of several inputs, batch by batch, against the reference evaluator."""

from dataclasses import replace
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipelines.plan_strategies import SOURCE, build_plan

from penstock.conformance.reference import Evaluator, InputBatch, InputRecord
from penstock.engine.batch.input_watermarks import StreamWatermarks, collect_watermark_rules
from penstock.engine.operators.watermark import Watermark
from penstock.engine.plan.sources import TopicOrigin, WatermarkStrategy
from penstock.engine.plan.stages import Plan
from penstock.engine.state.header_columns import MIN_TIMESTAMP_MS
from penstock.engine.windows.fixed import Fixed

OTHER = "others"
PARTITIONS = [(SOURCE, 0), (SOURCE, 1), (OTHER, 0)]
rules = st.builds(
    lambda bound, idle, follows: WatermarkStrategy(bound, idle, follows and idle is not None),
    st.sampled_from([0, 5]),
    st.sampled_from([None, 20]),
    st.booleans(),
)
times = st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 100), max_size=3)
unread = st.frozensets(st.sampled_from(PARTITIONS))
batches = st.lists(st.tuples(st.integers(0, 15), times, unread), min_size=1, max_size=12)
Ran = list[tuple[int, dict[tuple[str, int], int], frozenset[tuple[str, int]]]]


def plan_over(first: WatermarkStrategy, second: WatermarkStrategy) -> Plan:
    plan = build_plan(Fixed(10), watermark=first)
    (source,) = plan.sources
    source = replace(source, origin=TopicOrigin(SOURCE))
    other = replace(source, name=OTHER, origin=TopicOrigin(OTHER), watermark=second)
    stage = replace(plan.only_stage, inputs=(SOURCE, OTHER))
    return replace(plan, sources=(source, other), stages=(stage,))


@settings(deadline=None)
@given(rules, rules, batches)
def test_the_watermark_is_the_lowest_of_all_inputs(
    first: WatermarkStrategy, second: WatermarkStrategy, ran: Ran
) -> None:
    plan = plan_over(first, second)
    evaluator, reached, clock = Evaluator(plan), StreamWatermarks(Watermark(), {}), 0
    known = [f"{topic}/{partition}" for topic, partition in PARTITIONS]
    for number, (later, newest, waited) in enumerate(ran):
        clock += later
        records = tuple(
            InputRecord(topic, partition, number, {"key": "k", "value": 1, "at": time})
            for (topic, partition), time in newest.items()
        )
        outcome = evaluator.run(
            InputBatch(number, clock, records, frozenset(PARTITIONS), unread_partitions=waited)
        )
        named = {f"{topic}/{partition}": time for (topic, partition), time in newest.items()}
        reached = reached.with_unread([f"{topic}/{partition}" for topic, partition in waited], clock)
        reached = reached.advance(collect_watermark_rules(plan.sources), known, named, clock)
        value = reached.stream.value
        assert (-inf if value == MIN_TIMESTAMP_MS else value) == outcome.watermark


def test_an_input_without_records_holds_the_watermark() -> None:
    plan = plan_over(WatermarkStrategy(), WatermarkStrategy())
    reached = StreamWatermarks(Watermark(), {})
    known = [f"{SOURCE}/0", f"{OTHER}/0"]
    reached = reached.advance(
        collect_watermark_rules(plan.sources), known, {f"{SOURCE}/0": 70, f"{OTHER}/0": 30}, 0
    )
    reached = reached.advance(collect_watermark_rules(plan.sources), known, {f"{SOURCE}/0": 90}, 0)
    assert (reached.stream.value, reached.inputs) == (30, {SOURCE: 90, OTHER: 30})
