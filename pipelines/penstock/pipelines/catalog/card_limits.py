"""Each payment with the limit of its card at that time: an as-of join with a slowly changing topic.

A payment joins the latest limit of its card as of the time of the payment. The row is emitted when the watermark
has passed the payment, so that a delayed limit still counts.
"""

from penstock.pipelines.demonstration import Demo
from penstock.stream import as_of, join, read

card_limits = (
    join(
        read("cards", idle_after="5 seconds"),
        read("card-limits", idle_after="5 seconds"),
        by="card",
        how="left",
        take={"most": "card-limits.most", "payment": "cards.id", "amount": "cards.amount"},
    )
    .window(as_of())
    .trigger(lateness="1 minute")
    .write("card_limits", mode="log")
)

demo = Demo(
    rate=60,
    shares={"cards": 0.5, "card-limits": 0.5},
    note="Payments of cards without a limit keep a null: it is a left join.",
)
