"""Three Nexmark queries in one pass: hot auctions (q5), highest bids (q7), new users who sell (q8).

All 23 queries are in pipelines/docs/nexmark.md, each with its SQL. Here the three hottest auctions of the last ten
seconds are emitted every two seconds, early and with corrections. The auction number breaks ties.
"""

from penstock.pipelines.demonstration import Demo
from penstock.stream import (
    after_count,
    after_watermark,
    count,
    every,
    fixed,
    join,
    max_,
    read,
    repeatedly,
    sliding,
    top,
)

persons, auctions, bids = (
    read(f"nexmark-{each}", idle_after="5 seconds") for each in ("persons", "auctions", "bids")
)

bids_of_auctions = (
    bids.key("auction")
    .aggregate(bids=count())
    .window(sliding("10 seconds", "2 seconds"))
    .trigger(after_watermark(early=every("2 seconds")), lateness="10 seconds")
    .accumulation("retracting")
    .named("auction_bids")
)

highest = (
    bids.aggregate(price=max_("price"), auction=top(1, "auction", by="price"))
    .window(fixed("10 seconds"))
    .trigger(repeatedly(after_count(1)), lateness="10 seconds")
    .write("highest_bids", mode="latest")
)

newcomers = (
    join(
        persons.select("city", person="id"),
        auctions.select(person="seller"),
        by="person",
        how="semi",
        take=["city"],
    )
    .window(fixed("10 seconds"))
    .write("selling_newcomers", mode="log")
)

nexmark = (
    bids_of_auctions.then()
    .aggregate(auctions=top(3, "auction", by="bids"))
    .trigger(repeatedly(after_count(1)))
    .write("nexmark", mode="latest")
    .also(highest, newcomers)
)

demo = Demo(
    rate=100,
    last="40 seconds",
    step="2 seconds",
    shares={"nexmark-persons": 0.02, "nexmark-auctions": 0.06, "nexmark-bids": 0.92},
    note="The diagram shows the three auctions with the most bids. All three queries share one pass.",
)
