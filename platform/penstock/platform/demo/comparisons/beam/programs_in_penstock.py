"""The same three programs for this platform."""

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
    """The words of a line."""
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
"""How often each word is said in ten seconds: at every second one of a word, and corrected."""

visits = (
    read("clicks")
    .key("user")
    .aggregate(value=count())
    .window(sessions("10 seconds"))
    .trigger(after_watermark(late=after_count(1)), lateness="1 minute")
    .accumulation("discarding")
    .write("panes", mode="log")
)
"""How many clicks a visit has, a visit being clicks with no pause of ten seconds; each pane what is new."""

moving_mean = (
    read("sensors")
    .key("device")
    .aggregate(value=mean("temperature"))
    .window(sliding("20 seconds", "10 seconds"))
    .trigger(repeatedly(after_processing_time("5 seconds")), lateness="1 minute")
    .accumulation("accumulating")
    .write("panes", mode="log")
)
"""The mean of twenty seconds, every ten: five seconds after a first reading, ever again."""

PROGRAMS = {"word_count": word_count, "visits": visits, "moving_mean": moving_mean}
