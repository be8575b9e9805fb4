"""Clicks, payments and messages: a union of three topics, counted per kind and minute."""

from penstock.pipelines.demonstration import Demo
from penstock.stream import after_watermark, count, every, fixed, read, union

activity = (
    union(
        read("clicks", idle_after="5 seconds").sql("SELECT *, 'click' AS what FROM input"),
        read("cards", idle_after="5 seconds").sql("SELECT *, 'payment' AS what FROM input"),
        read("tweets", idle_after="5 seconds").sql("SELECT *, 'message' AS what FROM input"),
    )
    .key("what")
    .aggregate(events=count())
    .window(fixed("1 minute"))
    .trigger(after_watermark(early=every("10 seconds")), lateness="1 minute")
    .accumulation("retracting")
    .write("activity", mode="latest")
)

demo = Demo(shares={"clicks": 0.5, "cards": 0.2, "tweets": 0.3})
