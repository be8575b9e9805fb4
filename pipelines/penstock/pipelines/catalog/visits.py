"""Website visits: the clicks of a user in sessions with a gap of 30 seconds. Late clicks may merge sessions.

The gap is short because the generated clicks are close together.
"""

from penstock.pipelines.demonstration import Demo
from penstock.stream import after_watermark, collect, count, distinct, every, first, last, read, sessions

visits = (
    read("clicks", idle_after="5 seconds")
    .key("user")
    .aggregate(
        clicks=count(),
        pages=distinct("page"),
        entry_page=first("page"),
        exit_page=last("page"),
        steps=collect("action"),
    )
    .window(sessions("30 seconds"))
    .trigger(after_watermark(early=every("5 seconds")), lateness="5 minutes")
    .accumulation("retracting")
    .write("visits", mode="latest")
)

demo = Demo(rate=5)
