"""Click-through of advertisements: each impression with its clicks in the following ten minutes.

A session window groups each impression with its clicks (a co-group of two topics). A session may last longer than
ten minutes, so only clicks within ten minutes of the impression count. A second stage sums impressions and clicks
by ad.
"""

from collections.abc import Mapping
from typing import Any

from penstock.pipelines.demonstration import Demo
from penstock.stream import (
    after_count,
    collect,
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

ATTRIBUTION_WINDOW_MS = 600_000


def count_attributed_clicks(session: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the ad and its number of clicks within ten minutes, or nothing for clicks without an impression."""
    shown, clicks = session["shown_at"], session["clicked_at"] or ()
    if shown is None:
        return []
    return [
        {
            "ad": session["ad"],
            "clicks": sum(0 <= clicked - shown <= ATTRIBUTION_WINDOW_MS for clicked in clicks),
        }
    ]


ad_sessions = (
    union(
        read("impressions", idle_after="5 seconds").sql("SELECT *, id AS showing FROM input"),
        read("ad-clicks", idle_after="5 seconds").sql("SELECT *, impression AS showing FROM input"),
    )
    .key("showing")
    .aggregate(
        ad=of("impressions", first("ad")),
        shown_at=of("impressions", first("at")),
        clicked_at=of("ad-clicks", collect("at")),
    )
    .window(sessions("10 minutes"))
    .trigger(repeatedly(after_count(1)), lateness="1 minute")
    .accumulation("retracting")
    .write("showings", mode="latest")
)

click_through = (
    ad_sessions.then()
    .flat_map(count_attributed_clicks, returns={"ad": "STRING", "clicks": "BIGINT"})
    .key("ad")
    .aggregate(showings=count(), clicks=sum_("clicks"))
    .window(fixed("10 minutes"))
    .trigger(repeatedly(after_count(1)))
    .write("click_through", mode="latest")
)

demo = Demo(
    rate=6,
    last="20 minutes",
    step="1 minute",
    shares={"impressions": 5 / 6, "ad-clicks": 1 / 6},
    note="One click in eight arrives after its ten minutes and does not count.",
)
