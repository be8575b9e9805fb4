"""Trends that were planted are told, each once and within seconds; a calm stream tells nothing."""

from collections.abc import Iterator
from itertools import islice
from typing import Any
from zlib import crc32

import msgspec
import pytest
from tests.pipelines.catalog.send_time_batches import BEGAN, batches

from penstock.conformance.reference import Evaluator
from penstock.ingestion.generators import make_even_send_times
from penstock.ingestion.generators.generator import BLOCK_RECORDS
from penstock.ingestion.generators.queries import QueryGenerator, find_planted_trend
from penstock.pipelines import catalog
from penstock.pipelines.catalog.zeitgeist import QueryModel, add_questions, judge_second

RATE, RECORDS = 100, 16_000
Told = list[tuple[str, str, int, int]]
"""Query, trend, the second in which it was seen, the clock at which it was told."""


def sent(seed: int, *, calm: bool = False) -> Iterator[tuple[int, dict[str, Any]]]:
    times = make_even_send_times(BEGAN, RATE)
    made = islice(QueryGenerator(seed, calm=calm).generate_records(0, times), RECORDS)
    return ((times(number), msgspec.to_builtins(record)) for number, record in enumerate(made))


def by_query(fields: Any) -> int:
    return crc32(fields["query"].encode()) % 3


def told(records: Any, step_ms: int = 1_000) -> Told:
    evaluator = Evaluator(catalog.load_plan("zeitgeist"))
    panes = (
        pane
        for batch in batches(records, "queries", step_ms, by_query)
        for pane in evaluator.run(batch).panes
    )
    return [(pane.key[0], dict(pane.values)["trend"], int(pane.start), pane.clock) for pane in panes]


@pytest.mark.parametrize("seed", [1, 2])
def test_each_planted_trend_is_told_once_within_seconds_and_nothing_else_is(seed: int) -> None:
    found = told(sent(seed))
    truth = [
        (block, trend)
        for block in range(RECORDS // BLOCK_RECORDS)
        if (trend := find_planted_trend(seed, block)) is not None
    ]
    assert [(query, trend) for query, trend, _, _ in found] == [(each.query, each.trend) for _, each in truth]
    assert {each.trend for _, each in truth} == {"spike", "dip"}
    for (_, _, seen, clock), (block, _) in zip(found, truth, strict=True):
        begins = BEGAN + block * BLOCK_RECORDS * 1_000 // RATE
        assert begins <= seen <= begins + 5_000, "so many seconds it takes until a count is unlikely"
        assert clock - seen <= 6_000, "the second itself, the bound of the watermark, and the batch"


@pytest.mark.parametrize("seed", [1, 2])
def test_a_calm_stream_tells_of_nothing(seed: int) -> None:
    assert told(sent(seed, calm=True)) == []


def test_repeats_and_the_length_of_batches_change_nothing() -> None:
    bound = QueryGenerator().contract.max_out_of_orderness_ms
    timely = [(at, fields) for at, fields in sent(1) if at - fields["at"] <= bound]
    repeated = sorted(
        [*timely, *((at + 2_000, fields) for at, fields in timely[::7])], key=lambda each: each[0]
    )
    expected = [row[:3] for row in told(timely)]
    assert len(expected) == 3
    assert [row[:3] for row in told(repeated, step_ms=2_500)] == expected


@pytest.mark.parametrize("seconds", [10, 30, 32, 100])
@pytest.mark.parametrize("back", [1, 3, 5])
def test_a_question_that_comes_late_is_learned_from_as_one_in_time(seconds: int, back: int) -> None:
    def learned(in_time: dict[int, int]) -> QueryModel:
        model = QueryModel()
        for second in range(seconds):
            model, _ = judge_second(model, second, 3 + second % 2 + in_time.get(second, 0))
        return model

    late = add_questions(learned({}), [seconds - back] * 4)
    timely = learned({seconds - back: 4})
    assert late.expected_rate == pytest.approx(timely.expected_rate, rel=1e-12)
    assert late.recent_counts == timely.recent_counts
