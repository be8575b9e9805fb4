"""Card velocity: payments, amount and countries of each card over ten minutes, every minute."""

from penstock.pipelines.demonstration import Demo
from penstock.stream import after_count, count, distinct, max_, read, repeatedly, sliding, sum_

card_velocity = (
    read("cards", idle_after="5 seconds")
    .deduplicate(within="1 hour")
    .key("card")
    .aggregate(payments=count(), spent=sum_("amount"), most=max_("amount"), countries=distinct("country"))
    .window(sliding("10 minutes", "1 minute"))
    .trigger(repeatedly(after_count(1)), lateness="10 minutes")
    .accumulation("retracting")
    .write("card_velocity", mode="latest")
)

demo = Demo(rate=5, last="15 minutes", step="30 seconds")
