"""Nexmark queries of one stage over bids, against the recorded answers."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.pipelines.recorded_answers import load_recorded_document, recorded_file

from penstock.conformance.reference import InputRecord, Pane, evaluate_bounded
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.last import Last
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.min import Min
from penstock.engine.aggregates.sum import Sum
from penstock.engine.aggregates.top_n import TopN
from penstock.engine.plan.sources import Column, PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.steps import SqlStep
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.windows.calendar import Calendar
from penstock.engine.windows.global_window import Global
from penstock.engine.windows.window import Window

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
RANKS = (("rank1", 0, 10_000), ("rank2", 10_000, 1_000_000), ("rank3", 1_000_000, 10**18))


def load_bids() -> list[dict[str, Any]]:
    lines = recorded_file("nexmark/bids.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def load_answer(name: str) -> list[dict[str, Any]]:
    (query,) = (
        query for query in load_recorded_document("nexmark/answers.json")["queries"] if query["name"] == name
    )
    names = [column["name"] for column in query["columns"]]
    return [dict(zip(names, row, strict=True)) for row in query["rows"]]


def run_query(window: Window, key: tuple[str, ...], outputs: dict[str, Aggregate]) -> list[dict[str, Any]]:
    """Return the rows of a query. Among bids of one time the smallest `extra` comes last, as q18 breaks ties."""
    rows = sorted(load_bids(), key=lambda row: row["extra"], reverse=True)
    columns = tuple(Column(name, "string") for name in rows[0])
    source = PlanSource("bids", TopicOrigin("bids"), columns, "date_time")
    named = tuple(AggregateOutput(name, of) for name, of in outputs.items())
    steps = (SqlStep("SELECT *, ... AS rank1_price, ... FROM input"),)
    stage = Stage("query", ("bids",), window, named, steps, key, sinks=(PaneLog("query"),))
    records = [
        InputRecord("bids", 0, offset, {**row, "date_time": instant(row)}) for offset, row in enumerate(rows)
    ]
    outcome = evaluate_bounded(Plan("query", (source,), (stage,)), records, 0, add_rank_columns)
    return [as_row(pane, key) for pane in outcome.panes]


def instant(row: Mapping[str, Any]) -> int:
    return (datetime.fromisoformat(row["date_time"]) - EPOCH) // timedelta(milliseconds=1)


def add_rank_columns(fields: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Add columns with price, bidder and auction for the bids of each rank."""
    found = dict(fields)
    for rank, least, most in RANKS:
        is_in_rank = least <= fields["price"] < most
        found |= {
            f"{rank}_{name}": fields[name] if is_in_rank else None for name in ("price", "bidder", "auction")
        }
    yield found


def as_row(pane: Pane, key: tuple[str, ...]) -> dict[str, Any]:
    day = (
        {}
        if pane.start == float("-inf")
        else {"day": (EPOCH + timedelta(milliseconds=pane.start)).date().isoformat()}
    )
    return {**dict(zip(key, pane.key, strict=True)), **day, **dict(pane.values)}


def aggregate_by_rank(
    name_suffix: str, field: str, make: type[Count] | type[Distinct]
) -> dict[str, Aggregate]:
    return {f"total_{name_suffix}": make(field)} | {
        f"{rank}_{name_suffix}": make(f"{rank}_{field}") for rank, _, _ in RANKS
    }


def have_same_rows(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    return sorted(map(as_comparable, found)) == sorted(map(as_comparable, expected))


def as_comparable(row: Mapping[str, Any]) -> list[tuple[str, str]]:
    return sorted((name, str(round_number(value))) for name, value in row.items())


def round_number(value: Any) -> Any:
    """Round numbers, whether they are text or floats."""
    try:
        return round(Decimal(str(value)), 6).normalize()
    except ArithmeticError:
        return value


def test_q15_counts_bids_bidders_and_auctions_by_rank_and_day() -> None:
    outputs = aggregate_by_rank("bids", "price", Count) | aggregate_by_rank("bidders", "bidder", Distinct)
    outputs |= aggregate_by_rank("auctions", "auction", Distinct)
    assert have_same_rows(run_query(Calendar("day"), (), outputs), load_answer("q15"))


def test_q17_describes_the_prices_of_each_auction_and_day() -> None:
    outputs = aggregate_by_rank("bids", "price", Count) | {
        "min_price": Min("price"),
        "max_price": Max("price"),
        "avg_price": Mean("price"),
        "sum_price": Sum("price"),
    }
    assert have_same_rows(run_query(Calendar("day"), ("auction",), outputs), load_answer("q17"))


def test_q18_finds_the_last_bid_of_each_bidder_on_each_auction() -> None:
    found = run_query(Global(), ("auction", "bidder"), {"price": Last("price"), "channel": Last("channel")})
    expected = [
        {name: row[name] for name in ("auction", "bidder", "price", "channel")} for row in load_answer("q18")
    ]
    assert have_same_rows(found, expected)


def test_q19_finds_the_ten_highest_bids_of_each_auction_best_first() -> None:
    found = run_query(Global(), ("auction",), {"best": TopN("price", 10)})
    expected: dict[int, list[int]] = {}
    for row in sorted(load_answer("q19"), key=lambda row: (row["auction"], row["rank_number"])):
        expected.setdefault(row["auction"], []).append(row["price"])
    assert {row["auction"]: list(row["best"]) for row in found} == expected
