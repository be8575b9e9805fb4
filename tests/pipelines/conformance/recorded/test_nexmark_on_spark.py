"""The engine on Spark gives the recorded answers of Nexmark, every query with every column."""

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
from penstock.engine.plan import Plan
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
def held(spark: "SparkSession") -> InMemorySource:
    return create_memory_source(spark, {topic: recorded(topic) for topic in ("persons", "auctions", "bids")})


@pytest.fixture(scope="module")
def answers(
    spark: "SparkSession", held: InMemorySource, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Rows]:
    """What stands of each query when its input has ended. Queries that read the same topics run in one pass."""
    together = defaultdict[frozenset[str], dict[str, Pipeline]](dict)
    for name, query in QUERIES.items():
        written = query.write(name, mode="log")
        together[frozenset(source.name for source in written.to_plan(name).sources)][name] = written
    folder, found = tmp_path_factory.mktemp("nexmark"), {}
    for of_topics in together.values():
        (first, query), *others = of_topics.items()
        plan = query.also(*(each for _, each in others)).to_plan(first)
        panes = reexecute_batches(plan, spark, held, cut(plan, held), folder / first, lambda _: None)
        found |= {name: list(rows(name, panes.panes_of(name))) for name in of_topics}
    return found


def cut(plan: Plan, held: InMemorySource) -> list[BatchToReexecute]:
    """The topics of a plan in two batches, and the end of the input."""
    spans = [
        span for span in held.list_ranges() if span.topic in {topic_of(source) for source in plan.sources}
    ]
    halves = (
        tuple(OffsetRange(span.topic, 0, span.end * half // 2, span.end * (half + 1) // 2) for span in spans)
        for half in (0, 1)
    )
    return [
        *(BatchToReexecute(clock, half, BEFORE) for clock, half in enumerate(halves)),
        BatchToReexecute(10, watermark=MAX_TIMESTAMP_MS),
    ]


def rows(name: str, panes: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a query's panes, with its answer's names; lists are spread into a row for each place."""
    for row in panes.to_pylist():
        assert row["kind"] == "insert"
        start = row["window_start"]
        row |= {"id": row.get("id", row.get("auction")), "day": start and start.date().isoformat()}
        for one in flat(row):
            yield {**one} | {new: one[old] for old, new in RENAMED.get(name, {}).items()}


def comparable(row: Mapping[str, Any], names: list[str]) -> tuple[str, ...]:
    return tuple(str(plain(name, row[name])) for name in names)


def plain(name: str, value: Any) -> Any:
    """Means to twelve places, times in milliseconds, numbers without needless zeros, all else as it is."""
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
    expected = Counter(comparable(dict(zip(names, row, strict=True)), names) for row in query["rows"])
    assert Counter(comparable(row, names) for row in answers[name]) == expected


def test_every_recorded_query_is_run() -> None:
    assert [query["name"] for query in load_recorded_document("nexmark/answers.json")["queries"]] == list(
        QUERIES
    )
