"""The same three programs for this platform."""

from penstock.pipelines.model import (
    after_any,
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

word_count = (
    read("lines")
    .sql("SELECT *, explode(split(text, ' ')) AS word FROM input")
    .key("word")
    .aggregate(value=count())
    .window(fixed("10 seconds"))
    .trigger(after_watermark(early=after_count(2), late=after_count(1)), lateness="1 minute")
    .refine("accumulating")
    .write("panes", mode="log")
)
"""How often each word is said in ten seconds: at every second one of a word, and corrected."""

visits = (
    read("clicks")
    .key("user")
    .aggregate(value=count())
    .window(sessions("10 seconds"))
    .trigger(after_watermark(late=after_count(1)), lateness="1 minute")
    .refine("discarding")
    .write("panes", mode="log")
)
"""How many clicks a visit has, a visit being clicks with no pause of ten seconds; each pane what is new."""

moving_mean = (
    read("sensors")
    .key("device")
    .aggregate(value=mean("temperature"))
    .window(sliding("20 seconds", "10 seconds"))
    .trigger(repeatedly(after_any(after_count(3), after_processing_time("5 seconds"))), lateness="1 minute")
    .refine("accumulating")
    .write("panes", mode="log")
)
"""The mean of twenty seconds, every ten: with three readings or five seconds after the first, ever again."""

PROGRAMS = {"word_count": word_count, "visits": visits, "moving_mean": moving_mean}
