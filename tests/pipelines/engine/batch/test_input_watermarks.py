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
watermark_strategies = st.builds(
    lambda bound, idle, follows: WatermarkStrategy(bound, idle, follows and idle is not None),
    st.sampled_from([0, 5]),
    st.sampled_from([None, 20]),
    st.booleans(),
)
newest_times = st.dictionaries(st.sampled_from(PARTITIONS), st.integers(0, 100), max_size=3)
unread_partitions = st.frozensets(st.sampled_from(PARTITIONS))
batch_steps = st.lists(
    st.tuples(st.integers(0, 15), newest_times, unread_partitions), min_size=1, max_size=12
)
BatchSteps = list[tuple[int, dict[tuple[str, int], int], frozenset[tuple[str, int]]]]


def make_plan(first: WatermarkStrategy, second: WatermarkStrategy) -> Plan:
    plan = build_plan(Fixed(10), watermark=first)
    (source,) = plan.sources
    source = replace(source, origin=TopicOrigin(SOURCE))
    other = replace(source, name=OTHER, origin=TopicOrigin(OTHER), watermark=second)
    stage = replace(plan.only_stage, inputs=(SOURCE, OTHER))
    return replace(plan, sources=(source, other), stages=(stage,))


@settings(deadline=None)
@given(watermark_strategies, watermark_strategies, batch_steps)
def test_the_watermark_is_the_lowest_of_all_inputs(
    first: WatermarkStrategy, second: WatermarkStrategy, steps: BatchSteps
) -> None:
    plan = make_plan(first, second)
    evaluator, watermarks, clock = Evaluator(plan), StreamWatermarks(Watermark(), {}), 0
    partitions = [f"{topic}/{partition}" for topic, partition in PARTITIONS]
    for number, (elapsed, newest_by_partition, unread) in enumerate(steps):
        clock += elapsed
        records = tuple(
            InputRecord(topic, partition, number, {"key": "k", "value": 1, "at": time})
            for (topic, partition), time in newest_by_partition.items()
        )
        outcome = evaluator.run(
            InputBatch(number, clock, records, frozenset(PARTITIONS), unread_partitions=unread)
        )
        newest_by_name = {
            f"{topic}/{partition}": time for (topic, partition), time in newest_by_partition.items()
        }
        watermarks = watermarks.with_unread([f"{topic}/{partition}" for topic, partition in unread], clock)
        watermarks = watermarks.advance(
            collect_watermark_rules(plan.sources), partitions, newest_by_name, clock
        )
        value = watermarks.stream.value
        assert (-inf if value == MIN_TIMESTAMP_MS else value) == outcome.watermark


def test_an_input_without_records_holds_the_watermark() -> None:
    plan = make_plan(WatermarkStrategy(), WatermarkStrategy())
    watermarks = StreamWatermarks(Watermark(), {})
    partitions = [f"{SOURCE}/0", f"{OTHER}/0"]
    watermarks = watermarks.advance(
        collect_watermark_rules(plan.sources), partitions, {f"{SOURCE}/0": 70, f"{OTHER}/0": 30}, 0
    )
    watermarks = watermarks.advance(collect_watermark_rules(plan.sources), partitions, {f"{SOURCE}/0": 90}, 0)
    assert (watermarks.stream.value, watermarks.inputs) == (30, {SOURCE: 90, OTHER: 30})
