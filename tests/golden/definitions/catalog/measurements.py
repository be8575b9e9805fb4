"""One stage of most kinds over the readings, each with windows that are open most of the time."""

from dataclasses import dataclass

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow, Timer
from penstock.stream import (
    after_count,
    after_watermark,
    as_of,
    between,
    calendar,
    collect,
    count,
    distinct,
    every,
    first,
    fixed,
    join,
    last,
    max_,
    mean,
    min_,
    quantiles,
    read,
    records,
    repeatedly,
    sessions,
    sliding,
    sliding_by,
    sum_,
    top,
)

SILENCE_MS = 90_000


@dataclass(frozen=True)
class Trend:
    """What is known of a device."""

    readings: int
    highest: float | None


def follow(context: KeyContext[Trend]) -> KeyUpdate[Trend]:
    """Report each new maximum, and a device that was silent for a while."""
    trend = context.state or Trend(0, None)
    rows = [OutputRow({"readings": trend.readings, "highest": None}) for _ in context.due_timers]
    for each in context.records:
        value = each.fields["value"]
        trend = Trend(trend.readings + 1, trend.highest)
        if value is not None and (trend.highest is None or value > trend.highest):
            trend = Trend(trend.readings, value)
            rows.append(OutputRow({"readings": trend.readings, "highest": value}, at=each.time))
    newest = max((each.time for each in context.records), default=None)
    timers = None if newest is None else [Timer(newest + SILENCE_MS)]
    return KeyUpdate(trend, rows, timers)


readings = read("readings")

minutes = (
    readings.key("device")
    .aggregate(n=count(), total=sum_("value"), mean=mean("value"), least=min_("value"), most=max_("value"))
    .window(fixed("1 minute"))
    .trigger(after_watermark(early=after_count(4), late=after_count(1)), lateness="2 minutes")
    .accumulation("retracting")
    .write("minutes", mode="latest")
    .write("minutes", mode="log")
)

hours = (
    minutes.then()
    .aggregate(devices=distinct("device"), n=sum_("n"), hottest=max_("most"))
    .window(fixed("1 hour"))
    .trigger(repeatedly(after_count(1)))
    .accumulation("retracting")
    .write("hours", mode="latest")
)

overlapping = (
    readings.key("phase")
    .aggregate(n=count(), values=quantiles("value", 0.5, 0.9), devices=top(2, "device"))
    .window(sliding("2 minutes", "1 minute"))
    .trigger(after_watermark(early=every("1000 days")), lateness="1 minute")
    .write("overlapping", mode="latest")
)

days = (
    readings.key("device")
    .aggregate(n=count(), kinds=collect("phase"))
    .window(calendar("day", "Europe/Berlin"))
    .trigger(repeatedly(after_count(5)), lateness="1 hour")
    .accumulation("discarding")
    .write("days", mode="log")
)

visits = (
    readings.key("device")
    .aggregate(n=count(), came=first("phase"), left=last("phase"), steps=collect("id"))
    .window(sessions("20 seconds"))
    .trigger(after_watermark(early=after_count(2)), lateness="1 minute")
    .accumulation("retracting")
    .write("visits", mode="latest")
    .write("visits", mode="log")
)

newest = (
    readings.key("device")
    .aggregate(n=count(), mean=mean("value"))
    .window(sliding_by(evict=records(10), trigger=records(3)))
    .write("newest", mode="log")
)

trends = (
    readings.key("device")
    .stateful(follow, state=Trend, returns={"readings": "BIGINT", "highest": "DOUBLE"}, forget_after="1 day")
    .write("trends", mode="log")
)

limits = read("limits")

changes = (
    join(
        readings,
        limits,
        by="device",
        how="left",
        take={"reading": "readings.id", "highest": "limits.highest"},
    )
    .window(between("30 seconds", "1 minute"))
    .trigger(lateness="1 minute")
    .write("changes", mode="log")
)

checked = (
    join(
        readings,
        limits,
        by="device",
        how="left",
        take={"reading": "readings.id", "highest": "limits.highest"},
    )
    .window(as_of("10 minutes"))
    .trigger(lateness="1 minute")
    .write("checked", mode="log")
)

measurements = hours.also(overlapping, days, visits, newest, trends, changes, checked)
