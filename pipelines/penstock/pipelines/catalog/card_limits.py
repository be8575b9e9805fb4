"""What a card might pay at once when it paid: each payment beside the limit that held then.

The table of limits changes slowly, and is a topic: each payment is joined with the newest limit of its card that is
no younger than the payment. It is told when the watermark is so far, so a limit that is held up still counts.
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
    rate=60, shares={"cards": 0.5, "card-limits": 0.5}, note="Cards of which no limit is known have none."
)
