"""Nexmark's queries as the page has them: the engine's rows are those of plain SQL over the stored records."""

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
from penstock.engine.plan import Plan
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
BEGAN, BETWEEN_BIDS, CUTS, BETWEEN_CUTS = 1_800_000_000_000, 90, 4, 4_000
BEFORE = 0
"""A watermark before every record: the input is bounded, and ends with the last batch."""
COUNTS = {"nexmark-persons": 60, "nexmark-auctions": 180, "nexmark-bids": 2_760}
CHANNELS = {"search": 1, "mail": 2, "partner": 3}
RANKED = """
SELECT *, IF(price < 10000, price, NULL) AS cheap, IF(price >= 10000 AND price < 100000, price, NULL) AS middle,
  IF(price >= 100000, price, NULL) AS dear, IF(price >= 100000, bidder, NULL) AS dear_bidder FROM input
"""


def queries() -> Mapping[str, tuple[str, str]]:
    """The two forms of each query, by its name, as the page has them."""
    sections = re.split(r"^## ", PAGE.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return {
        part.partition("\n")[0]: tuple(re.findall(r"```(?:python|sql)\n(.*?)```", part, re.DOTALL))  # type: ignore[misc]
        for part in sections
    }


QUERIES = queries()
(SHARED,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8").partition("\n## ")[0], re.DOTALL)
"""What several queries of the page begin with."""


def generated() -> dict[str, list[dict[str, Any]]]:
    """Persons, auctions and bids whose times go on side by side."""
    found = {}
    for make in (NexmarkPersonGenerator, NexmarkAuctionGenerator, NexmarkBidGenerator):
        count = COUNTS[make.topic]
        step = BETWEEN_BIDS * COUNTS["nexmark-bids"] // count
        source = make(7)
        made = source.generate_records(0, lambda number, step=step: BEGAN + number * step)  # type: ignore[misc]
        found[make.topic] = [msgspec.to_builtins(one) for one in islice(made, count)]
    return found


@pytest.fixture(scope="module")
def records() -> dict[str, list[dict[str, Any]]]:
    return generated()


@pytest.fixture(scope="module")
def held(spark: "SparkSession", records: dict[str, list[dict[str, Any]]]) -> InMemorySource:
    return create_memory_source(
        spark, {topic: [json.dumps(one).encode() for one in rows] for topic, rows in records.items()}
    )


@pytest.fixture(scope="module")
def database(records: dict[str, list[dict[str, Any]]]) -> duckdb.DuckDBPyConnection:
    """The same records as tables."""
    connection = duckdb.connect()
    for topic, rows in records.items():
        table = pa.Table.from_pylist(
            [{**row, "t": row["at"], "clock": clock_of(number, len(rows))} for number, row in enumerate(rows)]
        )
        connection.register(topic.removeprefix("nexmark-"), table)
    connection.register("channels", pa.table({"channel": list(CHANNELS), "cost": list(CHANNELS.values())}))
    return connection


def clock_of(number: int, count: int) -> int:
    """The clock of the batch that a record is in."""
    return BEGAN + (number * CUTS // count) * BETWEEN_CUTS


def cut(plan: Plan) -> list[BatchToReexecute]:
    """Every topic of a plan in batches of about the same length, and the end of the input."""
    batches = []
    for part in range(CUTS):
        spans = []
        for topic in map(topic_of, plan.sources):
            count = COUNTS[topic]
            inside = [n for n in range(count) if n * CUTS // count == part]
            spans.append(OffsetRange(topic, 0, inside[0], inside[-1] + 1))
        lookups = {"side/channels": 0} if plan.lookups else {}
        batches.append(BatchToReexecute(BEGAN + part * BETWEEN_CUTS, tuple(spans), BEFORE, lookups))
    return [*batches, BatchToReexecute(BEGAN + 100 * BETWEEN_CUTS, watermark=MAX_TIMESTAMP_MS)]


def in_time(offer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """An offer that was made while its auction was open."""
    if not offer["begins"] <= offer["bid_at"] <= offer["expires"]:
        return []
    return [{name: value for name, value in offer.items() if name not in ("begins", "bid_at")}]


def one_by_one(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each of the last ten."""
    return [{"seller": row["seller"], "sold": sold} for sold in row["last_ten"]]


def names_of_page() -> dict[str, Any]:
    """What the page's code finds."""
    names: dict[str, Any] = {name: getattr(stream, name) for name in stream.__all__}
    bids, auctions, persons = (read(f"nexmark-{each}") for each in ("bids", "auctions", "persons"))
    names |= {
        "bids": bids,
        "auctions": auctions,
        "persons": persons,
        "in_time": in_time,
        "one_by_one": one_by_one,
        "each": stream.sliding_by(evict=stream.records(1), trigger=stream.records(1)),
        "ranked": bids.sql(RANKED),
    }
    exec(SHARED, names)
    return names


@pytest.fixture(scope="module")
def answers(spark: "SparkSession", held: InMemorySource, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What stands of each query when its input has ended. Queries that read the same topics run in one pass."""
    names, together = names_of_page(), defaultdict[Any, dict[str, Pipeline]](dict)
    for name, (code, _) in QUERIES.items():
        exec(code, names)
        query: Pipeline = names["query"].write(name, mode="log")
        together[frozenset(source.name for source in query.to_plan(name).sources)][name] = query
    folder, found = tmp_path_factory.mktemp("nexmark"), {}
    channels = pa.table({"channel": list(CHANNELS), "cost": pa.array(list(CHANNELS.values()), pa.int64())})
    write_deltalake(folder / "side/channels", channels)
    for of_topics in together.values():
        (first, query), *others = of_topics.items()
        plan = query.also(*(each for _, each in others)).to_plan(first)
        panes = reexecute_batches(
            plan, spark, held, cut(plan), folder / first, lambda _: None, warehouse=folder
        )
        found |= {name: rows(panes.panes_of(name)) for name in of_topics}
    return found


def rows(panes: pa.Table) -> list[dict[str, Any]]:
    """The rows of panes, with the beginnings of windows in milliseconds; nothing is taken back in the end."""
    told = panes.to_pylist()
    assert {row["kind"] for row in told} == {"insert"}
    for row in told:
        start = row["window_start"]
        row["window_start"] = None if start is None else round(start.timestamp() * 1000)
    return told


def comparable(row: Mapping[str, Any], names: list[str]) -> tuple[str, ...]:
    return tuple(str(plain(row[name])) for name in names)


def plain(value: Any) -> Any:
    if isinstance(value, float | Decimal):
        return round(float(value), 6)
    return [plain(each) for each in value] if isinstance(value, list) else value


@pytest.mark.spark
@pytest.mark.parametrize("name", sorted(QUERIES, key=lambda name: int(name[1:])))
def test_a_query_gives_the_rows_of_plain_sql(
    answers: Answers, database: duckdb.DuckDBPyConnection, name: str
) -> None:
    told = database.sql(QUERIES[name][1])
    names = list(told.columns)
    expected = [dict(zip(names, row, strict=True)) for row in told.fetchall()]
    assert Counter(comparable(row, names) for row in answers[name]) == Counter(
        comparable(row, names) for row in expected
    )
    assert expected


def test_every_query_is_on_the_page() -> None:
    assert set(QUERIES) == {f"q{number}" for number in range(23)}
