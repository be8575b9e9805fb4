"""The Nexmark queries of the page give the rows of their plain SQL."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import msgspec
import pyarrow as pa
import pytest
from deltalake import write_deltalake
from tests.pipelines.memory_topics import create_memory_source

from penstock import stream
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.intent import OffsetRange
from penstock.engine.history.reexecute import BatchToReexecute, reexecute_batches
from penstock.engine.plan.stages import Plan
from penstock.engine.spark.bounded_sources.memory_source import InMemorySource
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS
from penstock.ingestion.generators.nexmark import (
    NexmarkAuctionGenerator,
    NexmarkBidGenerator,
    NexmarkPersonGenerator,
)
from penstock.stream import Pipeline, read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Answers = Mapping[str, list[dict[str, Any]]]
PAGE = Path(__file__).parents[4] / "pipelines" / "docs" / "nexmark.md"
START_MS, BID_INTERVAL_MS, BATCH_COUNT, BATCH_INTERVAL_MS = 1_800_000_000_000, 90, 4, 4_000
BEFORE = 0
"""A watermark before every record: the input is bounded, and ends with the last batch."""
COUNTS = {"nexmark-persons": 60, "nexmark-auctions": 180, "nexmark-bids": 2_760}
CHANNELS = {"search": 1, "mail": 2, "partner": 3}
RANKED = """
SELECT *, IF(price < 10000, price, NULL) AS cheap, IF(price >= 10000 AND price < 100000, price, NULL) AS middle,
  IF(price >= 100000, price, NULL) AS dear, IF(price >= 100000, bidder, NULL) AS dear_bidder FROM input
"""


def parse_queries() -> Mapping[str, tuple[str, str]]:
    """Return the Python and the SQL of each query on the page, by its name."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {
        part.partition("\n")[0]: tuple(re.findall(r"```(?:python|sql)\n(.*?)```", part, re.DOTALL))  # type: ignore[misc]
        for part in sections
    }


QUERIES = parse_queries()
(SHARED_CODE,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8").partition("\n## ")[0], re.DOTALL)
"""Code that several queries of the page share."""


def generate_records() -> dict[str, list[dict[str, Any]]]:
    """Generate persons, auctions and bids over the same time."""
    found = {}
    for make in (NexmarkPersonGenerator, NexmarkAuctionGenerator, NexmarkBidGenerator):
        count = COUNTS[make.topic]
        step = BID_INTERVAL_MS * COUNTS["nexmark-bids"] // count
        source = make(7)
        made = source.generate_records(0, lambda number, step=step: START_MS + number * step)  # type: ignore[misc]
        found[make.topic] = [msgspec.to_builtins(one) for one in islice(made, count)]
    return found


@pytest.fixture(scope="module")
def records() -> dict[str, list[dict[str, Any]]]:
    return generate_records()


@pytest.fixture(scope="module")
def memory_source(spark: "SparkSession", records: dict[str, list[dict[str, Any]]]) -> InMemorySource:
    return create_memory_source(
        spark,
        {topic: [json.dumps(one).encode() for one in read_rows] for topic, read_rows in records.items()},
    )


@pytest.fixture(scope="module")
def database(records: dict[str, list[dict[str, Any]]]) -> duckdb.DuckDBPyConnection:
    """The same records as DuckDB tables."""
    connection = duckdb.connect()
    for topic, read_rows in records.items():
        table = pa.Table.from_pylist(
            [
                {**row, "t": row["at"], "clock": clock_of(number, len(read_rows))}
                for number, row in enumerate(read_rows)
            ]
        )
        connection.register(topic.removeprefix("nexmark-"), table)
    connection.register("channels", pa.table({"channel": list(CHANNELS), "cost": list(CHANNELS.values())}))
    return connection


def clock_of(number: int, count: int) -> int:
    """Return the clock of the batch of a record."""
    return START_MS + (number * BATCH_COUNT // count) * BATCH_INTERVAL_MS


def split_into_batches(plan: Plan) -> list[BatchToReexecute]:
    """Split every topic of a plan into batches of about one length, and add the end of the input."""
    batches = []
    for part in range(BATCH_COUNT):
        offset_ranges = []
        for topic in map(topic_of, plan.sources):
            count = COUNTS[topic]
            inside = [n for n in range(count) if n * BATCH_COUNT // count == part]
            offset_ranges.append(OffsetRange(topic, 0, inside[0], inside[-1] + 1))
        lookups = {"side/channels": 0} if plan.lookups else {}
        batches.append(
            BatchToReexecute(START_MS + part * BATCH_INTERVAL_MS, tuple(offset_ranges), BEFORE, lookups)
        )
    return [*batches, BatchToReexecute(START_MS + 100 * BATCH_INTERVAL_MS, watermark=MAX_TIMESTAMP_MS)]


def in_time(offer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the offer if it was made while its auction was open."""
    if not offer["begins"] <= offer["bid_at"] <= offer["expires"]:
        return []
    return [{name: value for name, value in offer.items() if name not in ("begins", "bid_at")}]


def explode_last_ten(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a row for each of the last ten."""
    return [{"seller": row["seller"], "sold": sold} for sold in row["last_ten"]]


def build_page_namespace() -> dict[str, Any]:
    """Return the names that the code of the page uses."""
    names: dict[str, Any] = {name: getattr(stream, name) for name in stream.__all__}
    bids, auctions, persons = (read(f"nexmark-{each}") for each in ("bids", "auctions", "persons"))
    names |= {
        "bids": bids,
        "auctions": auctions,
        "persons": persons,
        "in_time": in_time,
        "one_by_one": explode_last_ten,
        "each": stream.sliding_by(evict=stream.records(1), trigger=stream.records(1)),
        "ranked": bids.sql(RANKED),
    }
    exec(SHARED_CODE, names)
    return names


@pytest.fixture(scope="module")
def answers(
    spark: "SparkSession", memory_source: InMemorySource, tmp_path_factory: pytest.TempPathFactory
) -> Answers:
    """The final rows of each query. Queries over the same topics run in one pass."""
    names, queries_by_topics = build_page_namespace(), defaultdict[Any, dict[str, Pipeline]](dict)
    for name, (code, _) in QUERIES.items():
        exec(code, names)
        query: Pipeline = names["query"].write(name, mode="log")
        queries_by_topics[frozenset(source.name for source in query.to_plan(name).sources)][name] = query
    folder, found = tmp_path_factory.mktemp("nexmark"), {}
    channels = pa.table({"channel": list(CHANNELS), "cost": pa.array(list(CHANNELS.values()), pa.int64())})
    write_deltalake(folder / "side/channels", channels)
    for of_topics in queries_by_topics.values():
        (first, query), *others = of_topics.items()
        plan = query.also(*(each for _, each in others)).to_plan(first)
        panes = reexecute_batches(
            plan,
            spark,
            memory_source,
            split_into_batches(plan),
            folder / first,
            lambda _: None,
            warehouse=folder,
        )
        found |= {name: read_rows(panes.panes_of(name)) for name in of_topics}
    return found


def read_rows(panes: pa.Table) -> list[dict[str, Any]]:
    """Return the rows of panes, with window starts in milliseconds. None is a retraction."""
    rows = panes.to_pylist()
    assert {row["kind"] for row in rows} == {"insert"}
    for row in rows:
        start = row["window_start"]
        row["window_start"] = None if start is None else round(start.timestamp() * 1000)
    return rows


def as_comparable(row: Mapping[str, Any], names: list[str]) -> tuple[str, ...]:
    return tuple(str(round_numbers(row[name])) for name in names)


def round_numbers(value: Any) -> Any:
    if isinstance(value, float | Decimal):
        return round(float(value), 6)
    return [round_numbers(each) for each in value] if isinstance(value, list) else value


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(QUERIES, key=lambda name: int(name[1:])))
def test_a_query_gives_the_rows_of_its_sql(
    answers: Answers, database: duckdb.DuckDBPyConnection, name: str
) -> None:
    rows = database.sql(QUERIES[name][1])
    names = list(rows.columns)
    expected = [dict(zip(names, row, strict=True)) for row in rows.fetchall()]
    assert Counter(as_comparable(row, names) for row in answers[name]) == Counter(
        as_comparable(row, names) for row in expected
    )
    assert expected


def test_every_query_is_on_the_page() -> None:
    assert set(QUERIES) == {f"q{number}" for number in range(23)}
