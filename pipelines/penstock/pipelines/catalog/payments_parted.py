"""Three branches in one pass: large payments by card, online payments by merchant, all others by country.

Each payment goes to the first branch whose condition it meets. Each branch has its own key, windows, table and
record counts. The topic is read once for all branches.
"""

from penstock.pipelines.demonstration import Demo
from penstock.stream import after_count, count, fixed, max_, read, repeatedly, sum_

large, online, others = read("cards", idle_after="5 seconds").branches("amount > 200", "online")

payments_parted = (
    large.key("card")
    .aggregate(payments=count(), most=max_("amount"))
    .window(fixed("1 minute"))
    .trigger(repeatedly(after_count(1)), lateness="1 minute")
    .write("payments_parted", mode="latest")
    .also(
        online.key("merchant")
        .aggregate(payments=count(), spent=sum_("amount"))
        .window(fixed("1 minute"))
        .trigger(repeatedly(after_count(1)), lateness="1 minute")
        .write("payments_online", mode="latest"),
        others.key("country")
        .aggregate(payments=count(), spent=sum_("amount"))
        .window(fixed("5 minutes"))
        .trigger(repeatedly(after_count(1)), lateness="1 minute")
        .write("payments_by_country", mode="latest"),
    )
)

demo = Demo(
    rate=10,
    last="12 minutes",
    step="30 seconds",
    stage="payments_by_country",
    note="The diagram shows the third branch.",
)
