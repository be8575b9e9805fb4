"""How often advertisements are clicked on: each showing with the click that came within ten minutes of it.

Two topics are brought together by the showing that both name (a co-group): a showing and its click are one session
when no more than ten minutes lie between them, and two when more do. The sessions are counted by advertisement.
"""

from penstock.pipelines.demonstration import Demo
from penstock.pipelines.model import (
    after_count,
    count,
    first,
    fixed,
    of,
    read,
    repeatedly,
    sessions,
    sum_,
    union,
)

shown_and_clicked = (
    union(
        read("impressions", idle_after="5 seconds").sql("SELECT *, id AS showing FROM input"),
        read("ad-clicks", idle_after="5 seconds").sql("SELECT *, impression AS showing FROM input"),
    )
    .key("showing")
    .aggregate(
        showings=of("impressions", count()),
        clicks=of("ad-clicks", count()),
        ad=of("impressions", first("ad", order="event_time")),
    )
    .window(sessions("10 minutes"))
    .trigger(repeatedly(after_count(1)), lateness="1 minute")
    .refine("retracting")
    .write("showings", mode="latest")
)

click_through = (
    shown_and_clicked.then()
    .filter("showings > 0")
    .key("ad")
    .aggregate(showings=sum_("showings"), clicks=sum_("clicks"))
    .window(fixed("10 minutes"))
    .trigger(repeatedly(after_count(1)))
    .write("click_through", mode="latest")
)

demo = Demo(
    rate=6,
    last="20 minutes",
    step="1 minute",
    shares={"impressions": 5 / 6, "ad-clicks": 1 / 6},
    note="A showing counts where its own ten minutes are over. One click in eight comes later, and for nothing.",
)
