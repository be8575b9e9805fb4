"""A conversion funnel: visits per minute by their furthest step (looked, searched, filled a cart, bought).

Late clicks may change the furthest step of a visit. Then the visit moves from one count to another.
"""

from typing import TYPE_CHECKING

from penstock.pipelines.demonstration import Demo
from penstock.stream import (
    after_count,
    after_watermark,
    count,
    every,
    fixed,
    read,
    repeatedly,
    sessions,
    sum_,
)

if TYPE_CHECKING:
    import pyarrow as pa

FUNNEL_STEPS = ("looked", "searched", "filled a cart", "bought")


def add_furthest_step(visits: "pa.Table") -> "pa.Table":
    """Add the furthest step of each visit."""
    import pyarrow as pa
    import pyarrow.compute as pc

    reached = pa.array([FUNNEL_STEPS[0]] * visits.num_rows, pa.string())
    for column, step in zip(("searches", "adds", "buys"), FUNNEL_STEPS[1:], strict=True):
        reached = pc.if_else(pc.greater(visits.column(column), 0), pa.scalar(step), reached)
    return visits.append_column("reached", reached)


visits = (
    read("clicks", idle_after="5 seconds")
    .sql(
        "SELECT *, int(action = 'search') AS searched, int(action = 'add') AS added, int(action = 'buy') AS bought "
        "FROM input"
    )
    .key("user")
    .aggregate(clicks=count(), searches=sum_("searched"), adds=sum_("added"), buys=sum_("bought"))
    .window(sessions("30 seconds"))
    .trigger(after_watermark(early=every("10 seconds")), lateness="5 minutes")
    .accumulation("retracting")
    .write("funnel_visits", mode="latest")
)

funnel = (
    visits.then()
    .arrow(add_furthest_step)
    .key("reached")
    .aggregate(visits=count(), clicks=sum_("clicks"))
    .window(fixed("1 minute"))
    .trigger(repeatedly(after_count(1)))
    .write("funnel", mode="latest")
)

demo = Demo(rate=5)
