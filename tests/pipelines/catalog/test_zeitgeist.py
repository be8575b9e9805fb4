"""Planted trends are found once and within seconds; a calm stream has none."""

from collections.abc import Iterator
from itertools import islice
from typing import Any
from zlib import crc32

import msgspec
import pytest
from tests.pipelines.catalog.send_time_batches import START_MS, split_by_send_time

from penstock.conformance.reference import Evaluator
from penstock.ingestion.generators import make_even_send_times
from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.queries import QueryGenerator, find_planted_trend
from penstock.pipelines import catalog
from penstock.pipelines.catalog.zeitgeist import QueryModel, add_questions, judge_second

RATE, RECORDS = 100, 16_000
Trends = list[tuple[str, str, int, int]]
"""Query, trend, the second in which it was seen, the clock at which it was emitted."""


def generate_queries(seed: int, *, calm: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    times = make_even_send_times(START_MS, RATE)
    made = islice(QueryGenerator(seed, calm=calm).generate_records(0, times), RECORDS)
    return ((times(number), msgspec.to_builtins(record)) for number, record in enumerate(made))


def partition_of_query(fields: Any) -> int:
    return crc32(fields["query"].encode()) % 3


def find_trends(records: Any, step_ms: int = 1_000) -> Trends:
    evaluator = Evaluator(catalog.load_plan("zeitgeist"))
    panes = (
        pane
        for batch in split_by_send_time(records, "queries", step_ms, partition_of_query)
        for pane in evaluator.run(batch).panes
    )
    return [(pane.key[0], dict(pane.values)["trend"], int(pane.start), pane.clock) for pane in panes]


@pytest.mark.parametrize("seed", [1, 2])
def test_only_planted_trends_are_found_each_once_within_seconds(seed: int) -> None:
    trends = find_trends(generate_queries(seed))
    planted = [
        (block, trend)
        for block in range(RECORDS // BLOCK_RECORDS)
        if (trend := find_planted_trend(seed, block)) is not None
    ]
    assert [(query, trend) for query, trend, _, _ in trends] == [
        (each.query, each.trend) for _, each in planted
    ]
    assert {each.trend for _, each in planted} == {"spike", "dip"}
    for (_, _, seen, clock), (block, _) in zip(trends, planted, strict=True):
        block_start = START_MS + block * BLOCK_RECORDS * 1_000 // RATE
        assert block_start <= seen <= block_start + 5_000, "seconds until a count is unlikely"
        assert clock - seen <= 6_000, "the second itself, the bound of the watermark, and the batch"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_calm_stream_has_no_trends(seed: int) -> None:
    assert find_trends(generate_queries(seed, calm=True)) == []


def test_duplicates_and_batch_length_do_not_change_trends() -> None:
    bound = QueryGenerator().contract.max_out_of_orderness_ms
    in_time_queries = [(at, fields) for at, fields in generate_queries(1) if at - fields["at"] <= bound]
    with_duplicates = sorted(
        [*in_time_queries, *((at + 2_000, fields) for at, fields in in_time_queries[::7])],
        key=lambda each: each[0],
    )
    expected = [row[:3] for row in find_trends(in_time_queries)]
    assert len(expected) == 3
    assert [row[:3] for row in find_trends(with_duplicates, step_ms=2_500)] == expected


@pytest.mark.parametrize("seconds", [10, 30, 32, 100])
@pytest.mark.parametrize("seconds_late", [1, 3, 5])
def test_a_late_query_changes_the_model_as_one_in_time(seconds: int, seconds_late: int) -> None:
    def train_model(in_time: dict[int, int]) -> QueryModel:
        model = QueryModel()
        for second in range(seconds):
            model, _ = judge_second(model, second, 3 + second % 2 + in_time.get(second, 0))
        return model

    late = add_questions(train_model({}), [seconds - seconds_late] * 4)
    in_time_queries = train_model({seconds - seconds_late: 4})
    assert late.expected_rate == pytest.approx(in_time_queries.expected_rate, rel=1e-12)
    assert late.recent_counts == in_time_queries.recent_counts
