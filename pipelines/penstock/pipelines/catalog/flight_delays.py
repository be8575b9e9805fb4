"""Flight delays by airport and scheduled hour of departure, from real flights, with early, on-time and late panes.

A flight is reported when it departs, so its delay is its lateness. The first pane of an hour covers the punctual
flights; later panes correct it for up to a day.
"""

from penstock.pipelines.demonstration import Demo
from penstock.stream import after_count, after_watermark, count, fixed, max_, mean, quantiles, read

flight_delays = (
    read("flights", max_out_of_orderness="1 hour", idle_after="1 minute")
    .key("origin")
    .aggregate(
        flights=count(),
        delay=mean("dep_delay"),
        worst=max_("dep_delay"),
        shares=quantiles("dep_delay", 0.5, 0.9),
    )
    .window(fixed("1 hour"))
    .trigger(after_watermark(early=after_count(10), late=after_count(1)), lateness="1 day")
    .accumulation("retracting")
    .write("flight_delays", mode="latest")
)

demo = Demo(
    last="1 day",
    step="30 minutes",
    note="How other values of `max_out_of_orderness` perform is [measured](../watermark_bounds.md).",
)
