"""Definitions that type checkers accept."""

from datetime import timedelta

from penstock.stream import (
    after_any,
    after_count,
    after_processing_time,
    after_watermark,
    as_of,
    between,
    calendar,
    count,
    distinct,
    every,
    first,
    fixed,
    join,
    mean,
    read,
    records,
    repeatedly,
    sessions,
    sliding,
    sum_,
    top,
    tumbling,
    union,
)
from penstock.stream.types import (
    AccumulationMode,
    Aggregate,
    Duration,
    JoinKind,
    SinkMode,
    Trigger,
    Window,
)

EARLY: Trigger = after_watermark(early=every("10 seconds"), late=after_count(1))
MINUTES: Window = fixed("1 minute")
SIZE: Duration = timedelta(minutes=5)
MODE: AccumulationMode = "retracting"
KIND: JoinKind = "left"
TABLE: SinkMode = "log"
AVERAGE: Aggregate = mean("amount")

per_country = (
    read("cards", idle_after="30 seconds", future_records="quarantine", max_future_skew="1 hour")
    .deduplicate(within=SIZE)
    .filter("amount > 0")
    .key("country")
    .aggregate(total=sum_("amount"), average=AVERAGE, cards=distinct("card", exact=False))
    .window(MINUTES)
    .trigger(EARLY, lateness="1 hour", on_time_pane="when_changed", final_pane="always")
    .accumulation(MODE)
    .write("per_country")
    .write("per_country_log", mode=TABLE)
)
per_day = (
    per_country.then().aggregate(best=top(3, "country", by="total")).window(calendar("day", "Europe/Berlin"))
)
bought = join(read("clicks"), read("cards"), by="user", how=KIND).window(between("0 s", "10 minutes"))
priced = join(read("cards"), read("rates"), by="country").window(as_of("1 day")).write("priced", mode="log")
both = (
    union(read("cards"), read("clicks").select("id", "at")).aggregate(n=count()).window(sliding(SIZE, 60_000))
)
sampled = (
    read("cards").key("card").aggregate(place=first("country", order="arrival")).window(tumbling(records(5)))
)
visits = read("clicks").key("user").aggregate(clicks=count()).window(sessions("10 minutes"))
repeated = visits.trigger(repeatedly(after_any(after_count(100), after_processing_time("1 minute"))))
