"""Trending pages of a website: the five most viewed pages of the last minute, every ten seconds."""

from penstock.pipelines.demonstration import Demo
from penstock.stream import (
    after_count,
    after_watermark,
    count,
    distinct,
    every,
    read,
    repeatedly,
    sliding,
    top,
)

page_looks = (
    read("clicks", idle_after="5 seconds")
    .key("page")
    .aggregate(looks=count(), visitors=distinct("user"))
    .window(sliding("1 minute", "10 seconds"))
    .trigger(after_watermark(early=every("5 seconds")), lateness="1 minute")
    .accumulation("retracting")
    .named("page_looks")
)

trending = (
    page_looks.then()
    .aggregate(pages=top(5, "page", by="looks"))
    .trigger(repeatedly(after_count(1)))
    .write("trending", mode="latest")
)

demo = Demo(rate=10, last="3 minutes", step="5 seconds")
