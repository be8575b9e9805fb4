"""How often advertisements are clicked on: each showing with the clicks of the ten minutes after it.

Two topics are brought together by the showing that both name (a co-group): a showing and what lies within ten
minutes of it are in one session. A session may go on, so which of its clicks count is said by their times; then
showings and clicks are counted by advertisement.
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
    """A showing, and how many clicks came in the ten minutes after it; nothing where only clicks came."""
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
    note="A showing counts where its own ten minutes are over. One click in eight comes later, and for nothing.",
)
