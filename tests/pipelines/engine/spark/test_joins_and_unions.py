"""Joins, branches and unions over Kafka match DuckDB, live and bounded."""

from itertools import groupby
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
import pytest
from tests.pipelines.engine.spark.stream_runner import StreamRunner, send
from tests.pipelines.engine.spark.test_live_stream import query_duckdb

from penstock.core.kafka_client import BrokerAccess
from penstock.engine.history.bounded_run import run_bounded
from penstock.engine.history.bounded_run_config import BoundedRunConfig
from penstock.engine.plan.joins import JOIN_KINDS
from penstock.engine.spark.bounded_sources.topic_source import TopicSource
from penstock.engine.spark.bounded_sources.union_source import UnionSource
from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, ContractField
from penstock.stream import (
    Pipeline,
    after_count,
    as_of,
    between,
    count,
    fixed,
    join,
    of,
    read,
    repeatedly,
    sliding,
    sum_,
    top,
    union,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
EACH = repeatedly(after_count(1))
ROUNDS = 3
Sent = dict[str, list[dict[str, Any]]]


def make_contracts() -> tuple[Contract, Contract]:
    """Return contracts of page views and of buys."""
    suffix = uuid4().hex[:8]
    common = (ContractField("user", "string", "Who."), ContractField("at", "timestamp", "When."))
    page, price = (
        ContractField("page", "string", "What.", required=False),
        ContractField("price", "int", "Paid.", required=False),
    )
    tags = ContractField("tags", "array<string>", "What it is about.", required=False)
    return (
        Contract(f"views{suffix}", "Views.", (*common, page, tags), event_time="at"),
        Contract(f"buys{suffix}", "Buys.", (*common, price), event_time="at"),
    )


def make_rounds(seed: int) -> list[Sent]:
    """Return rounds of records of both topics, out of order, some with nulls."""
    random = Random(seed)
    rounds: list[Sent] = []
    for _ in range(ROUNDS):
        views = [
            {
                "user": random.choice("abcdef"),
                "at": random.randrange(60_000),
                "page": random.choice(["x", "y", None]),
                "tags": random.choice([["s", "t"], ["s"], [], None]),
            }
            for _ in range(40)
        ]
        buys = [
            {
                "user": random.choice("abcxyz"),
                "at": random.randrange(60_000),
                "price": random.choice([1, 5, 9, None]),
            }
            for _ in range(40)
        ]
        rounds.append({"views": views, "buys": buys})
    return rounds


def concat_rounds(rounds: list[Sent], name: str) -> pa.Table:
    return pa.Table.from_pylist([record for each in rounds for record in each[name]])


def run_live(
    runner: StreamRunner, topics: tuple[Contract, Contract], rounds: list[Sent], invalid_records: int = 0
) -> None:
    """Send the rounds one by one and run the stream after each; the first may have invalid records."""
    read_so_far = 0
    for number, each in enumerate(rounds):
        invalid = [b"broken"] * (invalid_records if number == 0 else 0)
        send(runner.broker, topics[0].topic, [*each["views"], *invalid])
        send(runner.broker, topics[1].topic, each["buys"])
        read_so_far += len(each["views"]) + len(each["buys"]) + len(invalid)
        runner.run_until_read(read_so_far)


def run_plan_bounded(runner: StreamRunner, topics: tuple[Contract, Contract]) -> None:
    stored = UnionSource(
        tuple(
            TopicSource(runner.session, each.topic, BrokerAccess(runner.broker.bootstrap)) for each in topics
        )
    )
    config = BoundedRunConfig(runner.folder / "bounded", runner.folder / "warehouse" / "runs", 100)
    run_bounded(runner.plan, runner.session, stored, config, lambda: 1_000_000)


def materialize_rows(log: pa.Table, columns: list[str]) -> list[tuple[Any, ...]]:
    """Return the rows that a log of panes leaves: on-time and final panes have all rows, others the changes."""
    rows_by_window: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
    order = sorted(log.to_pylist(), key=lambda row: (row["batch_id"], str(row["user"]), row["window_start"]))
    for (*window, _), changes in groupby(
        order, lambda row: (row["user"], row["window_start"], row["batch_id"])
    ):
        current, pane_rows = rows_by_window.setdefault(tuple(window), []), list(changes)
        by_kind = {kind: [row for row in pane_rows if row["kind"] == kind] for kind in ("retract", "insert")}
        retracted, inserted = ([row_values(row, columns) for row in by_kind[kind]] for kind in by_kind)
        for values in retracted:
            current.remove(values)
        if current and any(row["final"] or row["timing"] == "on_time" for row in by_kind["insert"]):
            assert sorted(inserted, key=repr) == sorted(current, key=repr), (
                "the pane differs from the current rows"
            )
        else:
            current += inserted
    return sorted((values for rows in rows_by_window.values() for values in rows), key=repr)


def row_values(row: dict[str, Any], columns: list[str]) -> tuple[Any, ...]:
    return (row["user"], row["window_start"].timestamp() * 1000, *(row[name] for name in columns))


def build_joins(views: Contract, buys: Contract) -> dict[str, Pipeline]:
    """Build a join of each kind over views with a page and all buys."""
    views_with_page, all_buys = read(views).filter("page is not null"), read(buys)
    return {
        kind: join(views_with_page, all_buys, by="user", how=kind, take=joined_columns(kind))
        .window(fixed("10 seconds"))
        .trigger(EACH, lateness="1000 days")
        .accumulation("retracting")
        .write(f"{kind}_{views.topic}", mode="log")
        for kind in JOIN_KINDS
    }


def joined_columns(kind: str) -> list[str]:
    """Return the columns of a joined row."""
    return ["page", "tags"] if kind in ("semi", "anti") else ["page", "tags", "price"]


JOINED = """
WITH seen AS (SELECT user, page, tags, "at" - "at" % 10000 AS w FROM views WHERE page IS NOT NULL),
bought AS (SELECT user, price, "at" - "at" % 10000 AS w FROM buys)
SELECT user, w::DOUBLE, {columns} FROM seen {kind} JOIN bought USING (user, w)
"""


def test_every_kind_of_join_matches_duckdb(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    views, buys = make_contracts()
    for each in (views, buys):
        broker.create_topic(each.topic, 1)
    first, *others = build_joins(views, buys).values()
    plan = first.also(*others).to_plan(f"joins_{views.topic}")
    runner = StreamRunner(plan, spark, broker, tmp_path)
    rounds = make_rounds(seed=3)
    run_live(runner, (views, buys), rounds, invalid_records=1)
    run_plan_bounded(runner, (views, buys))
    for kind in JOIN_KINDS:
        columns = joined_columns(kind)
        query = JOINED.format(columns=", ".join(columns), kind=kind)
        expected = sorted(
            query_duckdb(query, views=concat_rounds(rounds, "views"), buys=concat_rounds(rounds, "buys")),
            key=repr,
        )
        assert materialize_rows(runner.table(f"panes/{kind}_{views.topic}"), columns) == expected
        assert materialize_rows(runner.table(f"runs/panes/{kind}_{views.topic}"), columns) == expected
    views_without_page = sum(row["page"] is None for row in concat_rounds(rounds, "views").to_pylist())
    sums = (
        "SELECT topic, sum(read), sum(accepted), sum(quarantined), sum(filtered) "
        "FROM ledger GROUP BY 1 ORDER BY 1"
    )
    account = [
        (buys.topic, 120, 120, 0, 0),
        (views.topic, 121, 120 - views_without_page, 1, views_without_page),
    ]
    other_ledgers = [f"ledger/{plan.name}.{stage.name}" for stage in plan.source_stages[1:]]
    for ledger in (f"ledger/{plan.name}", *other_ledgers):
        assert query_duckdb(sums, ledger=runner.table(ledger)) == account


def two_rows_per_view(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return two rows for a view: the user, and the user in capitals."""
    return [{"who": row["user"], "what": "view"}, {"who": row["user"].upper(), "what": "view"}]


def to_buy(row: dict[str, Any]) -> dict[str, Any]:
    """Return a buy with its user in capitals."""
    return {"who": row["user"].upper(), "what": "buy"}


DEAREST = """
SELECT "at" - "at" % 10000, count(DISTINCT user), sum(price)::BIGINT FROM buys WHERE price > 3 GROUP BY 1
"""
CHEAP = """
WITH placed AS (SELECT price, unnest(["at" - "at" % 10000, "at" - "at" % 10000 - 10000]) AS w FROM buys)
SELECT price, w, count(1) FROM placed WHERE price <= 3 OR price IS NULL GROUP BY 1, 2
"""
BY_NAME = """
WITH every AS (SELECT user AS who, false AS bought FROM views UNION ALL SELECT upper(user), false FROM views
UNION ALL SELECT upper(user), true FROM buys)
SELECT who, count(1), count_if(bought) FROM every GROUP BY 1
"""
USER_COLUMNS = {"who": "STRING", "what": "STRING"}


def test_branches_and_a_union_in_one_pass_match_duckdb(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    views, buys = make_contracts()
    for each in (views, buys):
        broker.create_topic(each.topic, 1)
    expensive, cheap = read(buys).branches("price > 3")
    late = {"lateness": "1000 days"}
    by_user = (
        expensive.key("user").aggregate(paid=sum_("price")).window(fixed("10 seconds")).trigger(EACH, **late)
    )
    by_price = (
        cheap.key("price")
        .aggregate(n=count(), first=top(1, "user"))
        .window(sliding("20 seconds", "10 seconds"))
    )
    everyone = union(
        read(views).flat_map(two_rows_per_view, returns=USER_COLUMNS),
        read(buys).map(to_buy, returns=USER_COLUMNS),
    )
    by_name = (
        everyone.key("who").aggregate(n=count(), buys=of(buys.topic, count("what"))).window(fixed("1 minute"))
    )
    expensive_totals = (
        by_user.accumulation("retracting").write("dear").then().aggregate(users=count(), paid=sum_("paid"))
    )
    plan = (
        expensive_totals.trigger(EACH).write("dearest")
        .also(by_price.trigger(EACH, **late).write("cheap"), by_name.trigger(EACH, **late).write("named"))
        .to_plan(f"branches_{views.topic}")
    )  # fmt: skip
    runner = StreamRunner(plan, spark, broker, tmp_path)
    rounds = make_rounds(seed=5)
    run_live(runner, (views, buys), rounds)
    run_plan_bounded(runner, (views, buys))
    tables = {"views": concat_rounds(rounds, "views"), "buys": concat_rounds(rounds, "buys")}
    answers = {
        "dearest": ("epoch_ms(window_start), users, paid", DEAREST),
        "cheap": ("price, epoch_ms(window_start), n", CHEAP),
        "named": ("who, n, buys", BY_NAME),
    }
    for name, (columns, query) in answers.items():
        expected = query_duckdb(f"SELECT * FROM ({query}) ORDER BY ALL", **tables)
        for folder in ("", "runs/"):
            found = runner.table(f"{folder}latest/{name}")
            assert query_duckdb(f"SELECT {columns} FROM found ORDER BY ALL", found=found) == expected, name
    totals = "SELECT sum(read), sum(accepted), sum(filtered) FROM ledger"
    paid = sum(1 for row in tables["buys"].to_pylist() if (row["price"] or 0) > 3)
    assert query_duckdb(totals, ledger=runner.table(f"ledger/{plan.name}.cheap")) == [(120, 120 - paid, paid)]
    # Records that the first stage does not read are in the ledger of the first stage that reads them.
    assert query_duckdb(totals, ledger=runner.table(f"ledger/{plan.name}")) == [(240, 120 + paid, 120 - paid)]


NEAR = """
SELECT coalesce(views.user, buys.user), page, price FROM views FULL JOIN buys
ON views.user = buys.user AND buys."at" BETWEEN views."at" - 1000 AND views."at" + 5000
"""
NEWEST = """
SELECT views.user, page, price FROM views ASOF LEFT JOIN (
  SELECT user, "at", arg_max(price, came) AS price FROM (SELECT *, row_number() OVER () AS came FROM buys)
  WHERE price IS NOT NULL GROUP BY 1, 2) bought
ON views.user = bought.user AND views."at" >= bought."at"
"""


def test_interval_and_as_of_joins_match_duckdb_and_report_late_records(
    spark: "SparkSession", broker: LocalBroker, tmp_path: Path
) -> None:
    views, buys = make_contracts()
    for each in (views, buys):
        broker.create_topic(each.topic, 1)
    near = join(read(views), read(buys), by="user", how="full", take=["page", "price"])
    views_with_price = join(
        read(views), read(buys).filter("price is not null"), by="user", how="left", take=["page", "price"]
    )
    plan = (
        near.window(between("1 second", "5 seconds")).trigger(lateness="1 hour").write("near", mode="log")
        .also(views_with_price.window(as_of()).trigger(lateness="1 hour").write("newest", mode="log"))
        .to_plan(f"pairs_{views.topic}")
    )  # fmt: skip
    runner = StreamRunner(plan, spark, broker, tmp_path)
    rounds = make_rounds(seed=9)
    run_live(runner, (views, buys), rounds)
    # Records far ahead close all windows; the next view is late.
    hour = 3_600_000
    far_ahead: Sent = {
        "views": [{"user": "z", "at": 9 * hour, "page": "x"}],
        "buys": [{"user": "q", "at": 9 * hour}],
    }
    late: Sent = {"views": [{"user": "a", "at": 8, "page": "late"}], "buys": []}
    for number, each in enumerate((far_ahead, late)):
        send(broker, views.topic, each["views"])
        send(broker, buys.topic, each["buys"])
        runner.run_until_read(242 + number)
    tables = {"views": concat_rounds(rounds, "views"), "buys": concat_rounds(rounds, "buys")}
    before = "SELECT user, page, price FROM found WHERE window_start < '1970-01-01 01:00:00Z' ORDER BY ALL"
    for name, query in (("near", NEAR), ("newest", NEWEST)):
        expected = query_duckdb(f"SELECT * FROM ({query}) ORDER BY ALL", **tables)
        assert query_duckdb(before, found=runner.table(f"panes/{name}")) == expected, name
    for table in (f"late/{plan.name}", f"late/{plan.name}.newest"):
        assert runner.table(table).select(["offset", "user", "reason"]).to_pylist() == [
            {"offset": 121, "user": "a", "reason": "closed"}
        ]
    run_plan_bounded(runner, (views, buys))
    everything = {name: concat_rounds([*rounds, far_ahead, late], name) for name in ("views", "buys")}
    for name, query in (("near", NEAR), ("newest", NEWEST)):
        expected = query_duckdb(f"SELECT * FROM ({query}) ORDER BY ALL", **everything)
        bounded = runner.table(f"runs/panes/{name}")
        assert query_duckdb("SELECT user, page, price FROM found ORDER BY ALL", found=bounded) == expected
