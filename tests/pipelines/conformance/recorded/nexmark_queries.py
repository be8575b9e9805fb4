"""The recorded Nexmark queries as pipelines over the recorded records.

They differ from the queries of the page `pipelines/docs/nexmark.md`: with all columns that the answers have,
and with the quirks that the answers' own description tells of.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

from tests.pipelines.recorded_answers import recorded_file

from penstock.ingestion.contracts import Contract, ContractField
from penstock.stream import (
    Pipeline,
    calendar,
    count,
    distinct,
    fixed,
    global_window,
    join,
    last,
    max_,
    mean,
    min_,
    read,
    records,
    sliding,
    sliding_by,
    sum_,
    top,
)

Row = Mapping[str, Any]

TEXTS = {
    "persons": ("name", "email_address", "credit_card", "city", "state", "extra"),
    "auctions": ("item_name", "description", "extra"),
    "bids": ("channel", "url", "extra"),
}
NUMBERS = {
    "persons": ("id",),
    "auctions": ("id", "initial_bid", "reserve", "seller", "category"),
    "bids": ("auction", "bidder", "price"),
}
TIMES = {"persons": ("date_time",), "auctions": ("date_time", "expires"), "bids": ("date_time",)}
RANKS = (("rank1", 0, 10_000), ("rank2", 10_000, 1_000_000), ("rank3", 1_000_000, 10**18))


def contract(topic: str) -> Contract:
    """What the records of a topic look like."""
    kinds = dict.fromkeys(NUMBERS[topic], "long") | dict.fromkeys(TEXTS[topic], "string")
    kinds |= dict.fromkeys(TIMES[topic], "timestamp")
    fields = tuple(ContractField(name, kind, "As recorded.") for name, kind in kinds.items())
    return Contract(topic, "As recorded.", fields, event_time="date_time")


def milliseconds(text: str) -> int:
    """A time as records have it, from a time as it was recorded."""
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def recorded(topic: str) -> list[bytes]:
    """The records of a topic, in the order in which they came.

    Of bids at one time the one with the smallest `extra` comes last, for so q18 says which of them counts.
    """
    lines = recorded_file(f"nexmark/{topic}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    if topic == "bids":
        rows.sort(key=lambda row: row["extra"], reverse=True)
    for row in rows:
        row |= {name: milliseconds(row[name]) for name in TIMES[topic]}
    return [json.dumps(row).encode() for row in rows]


persons, auctions, bids = (
    read(contract(topic), max_out_of_orderness="1 day") for topic in ("persons", "auctions", "bids")
)
each = sliding_by(evict=records(1), trigger=records(1))


def each_bid(of: Pipeline, *names: str) -> Pipeline:
    """A row for each bid, with these fields."""
    return of.key("auction").aggregate(**{name: last(name) for name in names}).window(each)


def best(n: int, *names: str, largest: bool = True) -> dict[str, Any]:
    """These fields of the bids with the greatest, or least, price."""
    return {name: top(n, name, by="price", largest=largest) for name in names}


def with_columns(**columns: str) -> Pipeline:
    """Bids with columns that SQL makes of them."""
    return bids.sql(
        f"SELECT *, {', '.join(f'{text} AS {name}' for name, text in columns.items())} FROM input"
    )


def in_time(offer: Row) -> list[Row]:
    """An offer that was made while its auction was open."""
    inside = offer["opened"] <= offer["bid_at"] <= offer["expires"]
    return [{name: offer[name] for name in OFFERED}] if inside else []


def flat(row: Row) -> Iterator[Row]:
    """A row for each place of the lists in a row, the best first; the row itself where it has none."""
    lists = {name: value for name, value in row.items() if isinstance(value, list)}
    if not lists:
        yield row
    for place, values in enumerate(zip(*lists.values(), strict=True)):
        yield {**row, **dict(zip(lists, values, strict=True)), "rank_number": place + 1}


def means_of_eleven(row: Row) -> Iterator[Row]:
    """For each auction of a seller, in the order of the bids that closed them: the mean with the ten before it."""
    closings = row["price"][::-1]
    for place in range(len(closings)):
        lately = closings[max(0, place - 10) : place + 1]
        yield {"seller": row["seller"], "number": place, "avg": sum(lately) / len(lately)}


AUCTION = (
    "auction", "item_name", "description", "initial_bid", "reserve", "opened", "expires", "seller", "category",
)  # fmt: skip
OFFERED = dict.fromkeys(AUCTION, "BIGINT") | {"item_name": "STRING", "description": "STRING"}
OFFERED |= {"bidder": "BIGINT", "price": "BIGINT", "bid_at": "BIGINT"}

opened = auctions.select(*AUCTION[1:5], *AUCTION[6:], "extra", auction="id", opened="date_time")
offers = bids.select("auction", "bidder", "price", "channel", "url", bid_at="date_time", bid_extra="extra")
offered = (
    join(opened, offers, by="auction")
    .window(global_window())
    .named("offers")
    .then()
    .flat_map(in_time, returns=OFFERED)
)
euros = "0.908BD * CAST(price AS DECIMAL(18, 0))"
time_of_day = """CASE WHEN hour(timestamp_millis(date_time)) BETWEEN 8 AND 18 THEN 'dayTime'
  WHEN hour(timestamp_millis(date_time)) <= 6 OR hour(timestamp_millis(date_time)) >= 20 THEN 'nightTime'
  ELSE 'otherTime' END"""
ranked = with_columns(
    **{
        f"{rank}_{name}": f"IF(price >= {least} AND price < {most}, {name}, NULL)"
        for rank, least, most in RANKS
        for name in ("price", "bidder", "auction")
    },
    minute="date_format(timestamp_millis(date_time), 'hh:MM')",
)


def by_rank(make: Callable[[str], Any], what: str, field: str) -> dict[str, Any]:
    """An aggregate over all bids, and over those of each rank of prices."""
    return {f"total_{what}": make(field)} | {f"{rank}_{what}": make(f"{rank}_{field}") for rank, *_ in RANKS}


counted = by_rank(count, "bids", "price")
described = counted | by_rank(distinct, "bidders", "bidder") | by_rank(distinct, "auctions", "auction")
most_bids = (
    bids.key("auction").aggregate(num=count()).window(sliding("10 seconds", "2 seconds")).named("counts")
)
greatest = most_bids.then().aggregate(num=max_("num")).named("greatest")

QUERIES: Mapping[str, Pipeline] = {
    "q0": each_bid(bids, "bidder", "price", "date_time"),
    "q1": each_bid(with_columns(euros=euros), "bidder", "euros", "date_time"),
    "q2": each_bid(bids.sql("SELECT * FROM input WHERE auction IN (1007, 1020, 2001, 2019, 2087)"), "price"),
    "q3": join(
        persons.filter("state = 'or' or state = 'id' or state = 'ca'").select(
            "name", "city", "state", seller="id"
        ),
        auctions.filter("category = 10").select("seller", "id"),
        by="seller",
    ).window(global_window()),
    "q4": (
        offered.key("auction", "category")
        .aggregate(price=max_("price"))
        .then()
        .key("category")
        .aggregate(avg=mean("price"))
    ),
    "q5": join(most_bids, greatest, by="num", take={"auction": "counts.auction"}),
    "q6_group_top1": (
        offered.key("auction", "seller")
        .aggregate(**best(1, "price", "bid_at", largest=False))
        .then()
        .flat_map(flat, returns={"seller": "BIGINT", "price": "BIGINT", "bid_at": "BIGINT"})
        .key("seller")
        .aggregate(price=top(1_000, "price", by="bid_at"))
        .then()
        .flat_map(means_of_eleven, returns={"seller": "BIGINT", "number": "BIGINT", "avg": "DOUBLE"})
        .key("seller", "number")
        .aggregate(avg=max_("avg"))
    ),
    "q7": bids.aggregate(**best(1, "auction", "price", "bidder", "date_time")).window(fixed("10 seconds")),
    "q8": join(
        persons.select("name", "id"), auctions.select(id="seller"), by="id", how="semi", take=["name"]
    ).window(fixed("10 seconds")),
    "q9": offered.key(*AUCTION).aggregate(**best(1, "bidder", "price", "bid_at")),
    "q10": each_bid(
        with_columns(
            date="date_format(timestamp_millis(date_time), 'yyyy-MM-dd')",
            time="date_format(timestamp_millis(date_time), 'hh:mm')",
        ),
        *("bidder", "price", "date_time", "date", "time"),
    ),
    "q14": each_bid(
        with_columns(
            euros=euros, bidtimetype=time_of_day, c_counts="length(extra) - length(replace(extra, 'c', ''))"
        ).sql("SELECT * FROM input WHERE euros > 1000000 AND euros < 50000000"),
        *("bidder", "euros", "bidtimetype", "date_time", "c_counts"),
    ),
    "q15": ranked.aggregate(**described).window(calendar("day")),
    "q16": ranked.key("channel").aggregate(minute=max_("minute"), **described).window(calendar("day")),
    "q17": (
        ranked.key("auction")
        .aggregate(
            **counted,
            min_price=min_("price"),
            max_price=max_("price"),
            avg_price=mean("price"),
            sum_price=sum_("price"),
        )
        .window(calendar("day"))
    ),
    "q18": (
        bids.key("auction", "bidder")
        .aggregate(**{name: last(name) for name in ("price", "channel", "url", "date_time", "extra")})
        .window(global_window())
    ),
    "q19": bids.key("auction")
    .aggregate(**best(10, "bidder", "price", "channel", "url", "date_time", "extra"))
    .window(global_window()),
    "q20": join(opened.filter("category = 10"), offers, by="auction").window(global_window()),
    "q21": each_bid(
        with_columns(
            channel_id="""CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2'
              WHEN 'baidu' THEN '3' ELSE nullif(regexp_extract(url, '[?&]channel_id=([^&]*)', 1), '') END"""
        ).filter("channel_id is not null"),
        *("bidder", "price", "channel", "channel_id"),
    ),
    "q22": each_bid(
        with_columns(**{f"dir{place}": f"split(url, '/')[{place + 2}]" for place in (1, 2, 3)}),
        *("bidder", "price", "channel", "dir1", "dir2", "dir3"),
    ),
}
"""Those whose answers are recorded."""

RENAMED: Mapping[str, Mapping[str, str]] = {  # columns, and what the answers call them
    "q1": {"euros": "price"},
    "q8": {"window_start": "starttime"},
    "q9": {"opened": "date_time", "bid_at": "bid_date_time"},
    "q14": {"euros": "price"},
    "q20": {"bid_at": "bid_date_time", "opened": "auction_date_time", "extra": "auction_extra"},
}
