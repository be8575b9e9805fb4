"""The same three programs for Penstock."""

from collections.abc import Mapping
from typing import Any

from penstock.stream import (
    after_count,
    after_processing_time,
    after_watermark,
    count,
    fixed,
    mean,
    read,
    repeatedly,
    sessions,
    sliding,
)


def split_words(line: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the words of a line."""
    return [{"word": word} for word in line["text"].split()]


word_count = (
    read("lines")
    .flat_map(split_words, returns={"word": "STRING"})
    .key("word")
    .aggregate(value=count())
    .window(fixed("10 seconds"))
    .trigger(after_watermark(early=after_count(2), late=after_count(1)), lateness="1 minute")
    .accumulation("accumulating")
    .write("panes", mode="log")
)
"""Count words in ten-second windows, with an early pane for every second occurrence and late corrections."""

visits = (
    read("clicks")
    .key("user")
    .aggregate(value=count())
    .window(sessions("10 seconds"))
    .trigger(after_watermark(late=after_count(1)), lateness="1 minute")
    .accumulation("discarding")
    .write("panes", mode="log")
)
"""Count the clicks of each visit (session gap: ten seconds); each pane has the new clicks only."""

moving_mean = (
    read("sensors")
    .key("device")
    .aggregate(value=mean("temperature"))
    .window(sliding("20 seconds", "10 seconds"))
    .trigger(repeatedly(after_processing_time("5 seconds")), lateness="1 minute")
    .accumulation("accumulating")
    .write("panes", mode="log")
)
"""Mean of twenty-second windows that slide by ten seconds, updated five seconds after each first new reading."""

PROGRAMS = {"word_count": word_count, "visits": visits, "moving_mean": moving_mean}
