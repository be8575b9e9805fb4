"""Parts of a plan are shown in the words of a definition."""

import pytest

from penstock.engine.plan.stages import Stage
from penstock.engine.upgrade.part_words import describe_part
from penstock.stream import (
    after_any,
    after_count,
    after_processing_time,
    after_punctuation,
    after_watermark,
    as_of,
    between,
    calendar,
    count,
    default,
    delta,
    elapsed,
    every,
    first,
    fixed,
    global_window,
    of,
    or_finally,
    quantiles,
    read,
    records,
    repeatedly,
    sessions,
    sliding,
    sliding_by,
    sum_,
    top,
    tumbling,
)

PARTS = {
    "after_watermark(early=every(10 seconds), late=after_count(3))": after_watermark(
        early=every("10 s"), late=after_count(3)
    ),
    "after_any(after_count(3), after_processing_time(10 seconds))": after_any(
        after_count(3), after_processing_time("10 s")
    ),
    "repeatedly(after_punctuation(kind = 'end'))": repeatedly(after_punctuation("kind = 'end'")),
    "or_finally(default(), after_count(1000))": or_finally(default(), after_count(1000)),
    "fixed(1 minute, time=processing)": fixed("1 m", time="processing"),
    "sliding(1 hour, 5 minutes)": sliding("1 hour", "5 minutes"),
    "sessions(10 minutes)": sessions("10 minutes"),
    "calendar(day, zone=Europe/Berlin)": calendar("day", "Europe/Berlin"),
    "between(1 minute, 2 minutes)": between("1 m", "2 m"),
    "as_of(tolerance=1 day, ends=x = 3)": as_of("1 d", ends="x = 3"),
    "global()": global_window(),
    "tumbling(records(5))": tumbling(records(5)),
    "sliding_by(elapsed(1 minute), delta(speed, 3))": sliding_by(elapsed("1 m"), delta("speed", 3)),
    "sum(amount)": sum_("amount"),
    "quantiles(amount, 0.5, 0.9)": quantiles("amount", 0.5, 0.9),
    "top(3, card, by=amount)": top(3, "card", by="amount"),
    "first(card, order=arrival)": first("card", order="arrival"),
    "of(cards, count())": of("cards", count()),
}


@pytest.mark.parametrize("words", PARTS)
def test_a_part_is_described_as_it_is_written(words: str) -> None:
    assert describe_part(PARTS[words]) == words


def test_the_other_parts_of_a_stage_are_described_in_words() -> None:
    stage: Stage = (
        read("cards", idle_after="1 minute")
        .filter("amount > 3")
        .select("card", "at", "country", paid="amount")
        .key("country")
        .aggregate(n=count())
        .window(fixed("1 minute"))
        .trigger(lateness="1 hour")
        .write("x", mode="log")
        .plan.only_stage
    )
    words = [describe_part(part) for part in (stage.steps, stage.sinks, stage.key, stage.lateness)]
    assert words == [
        "[filter(amount > 3), select(card, at, country, paid=amount)]",
        "[log(x)]",
        "[country]",
        "1 hour",
    ]
