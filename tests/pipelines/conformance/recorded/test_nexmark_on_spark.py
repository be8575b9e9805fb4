"""Every Nexmark query on Spark gives its recorded answer, with every column."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.pipelines.conformance.recorded.nexmark_queries import (
    QUERIES,
    RENAMED,
    flat,
    milliseconds,
    recorded,
)
from tests.pipelines.memory_topics import create_memory_source
from tests.pipelines.recorded_answers import load_recorded_document

from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.history.reexecute import BatchToReexecute, reexecute_batches
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources.memory_source import InMemorySource
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.stream import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Rows = list[dict[str, Any]]
BEFORE = 0
"""A watermark before every record: the input is bounded, and ends with the last batch."""
MEANS = {"avg", "avg_price"}
TIMES = {"date_time", "expires", "starttime", "bid_date_time", "auction_date_time"}


@pytest.fixture(scope="module")
def memory_source(spark: "SparkSession") -> InMemorySource:
    return create_memory_source(spark, {topic: recorded(topic) for topic in ("persons", "auctions", "bids")})


@pytest.fixture(scope="module")
def answers(
    spark: "SparkSession", memory_source: InMemorySource, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Rows]:
    """The final rows of each query. Queries over the same topics run in one pass."""
    queries_by_topics = defaultdict[frozenset[str], dict[str, Pipeline]](dict)
    for name, query in QUERIES.items():
        written = query.write(name, mode="log")
        queries_by_topics[frozenset(source.name for source in written.to_plan(name).sources)][name] = written
    folder, found = tmp_path_factory.mktemp("nexmark"), {}
    for of_topics in queries_by_topics.values():
        (first, query), *others = of_topics.items()
        plan = query.also(*(each for _, each in others)).to_plan(first)
        panes = reexecute_batches(
            plan,
            spark,
            memory_source,
            split_into_batches(plan, memory_source),
            folder / first,
            lambda _: None,
        )
        found |= {name: list(iter_rows(name, panes.panes_of(name))) for name in of_topics}
    return found


def split_into_batches(plan: Plan, memory_source: InMemorySource) -> list[BatchToReexecute]:
    """Split the topics of a plan into two batches, and add the end of the input."""
    offset_ranges = [
        offset_range
        for offset_range in memory_source.list_ranges()
        if offset_range.topic in {topic_of(source) for source in plan.sources}
    ]
    halves = (
        tuple(
            OffsetRange(
                offset_range.topic, 0, offset_range.end * half // 2, offset_range.end * (half + 1) // 2
            )
            for offset_range in offset_ranges
        )
        for half in (0, 1)
    )
    return [
        *(BatchToReexecute(clock, half, BEFORE) for clock, half in enumerate(halves)),
        BatchToReexecute(10, watermark=MAX_TIMESTAMP_MS),
    ]


def iter_rows(name: str, panes: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query under the names of its answer, with one row for each list item."""
    for row in panes.to_pylist():
        assert row["kind"] == "insert"
        start = row["window_start"]
        row |= {"id": row.get("id", row.get("auction")), "day": start and start.date().isoformat()}
        for one in flat(row):
            yield {**one} | {new: one[old] for old, new in RENAMED.get(name, {}).items()}


def as_comparable(row: Mapping[str, Any], names: list[str]) -> tuple[str, ...]:
    return tuple(str(normalize_value(name, row[name])) for name in names)


def normalize_value(name: str, value: Any) -> Any:
    """Round means to twelve digits, and write times in milliseconds and numbers without trailing zeros."""
    if name in MEANS:
        return f"{float(value):.12g}"
    if isinstance(value, datetime):
        value = round(value.astimezone(UTC).timestamp() * 1000)
    elif name in TIMES and isinstance(value, str):
        value = milliseconds(value)
    try:
        return Decimal(str(value)).normalize()
    except ArithmeticError:
        return value


@pytest.mark.spark
@pytest.mark.parametrize("name", QUERIES)
def test_a_query_gives_its_recorded_answer(answers: Mapping[str, Rows], name: str) -> None:
    (query,) = (
        one for one in load_recorded_document("nexmark/answers.json")["queries"] if one["name"] == name
    )
    names = [column["name"] for column in query["columns"]]
    expected = Counter(as_comparable(dict(zip(names, row, strict=True)), names) for row in query["rows"])
    assert Counter(as_comparable(row, names) for row in answers[name]) == expected


def test_every_recorded_query_is_run() -> None:
    assert [query["name"] for query in load_recorded_document("nexmark/answers.json")["queries"]] == list(
        QUERIES
    )
