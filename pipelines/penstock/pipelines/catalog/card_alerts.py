"""Cards that cannot be where they are: used in two countries within a quarter of an hour.

A card's payments come to a function that remembers the last country in which the card was used. A payment that is
older than that one, because it came late, changes nothing that is remembered; it is judged all the same.
"""

from dataclasses import dataclass

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.pipelines.demonstration import Demo
from penstock.stream import read

MIN_TRAVEL_TIME_MS = 15 * 60_000
"""Milliseconds in which nobody gets from one country to another."""


@dataclass(frozen=True)
class CardLastSeen:
    """Where and when a card was seen last."""

    country: str
    at: int


def flag_distant_payments(context: KeyContext[CardLastSeen]) -> KeyUpdate[CardLastSeen]:
    """A row for each payment that is too near in time to one in another country."""
    last, rows = context.state, []
    for payment in context.records:
        country, at = payment.fields["country"], payment.time
        if last is not None and country != last.country and abs(at - last.at) <= MIN_TRAVEL_TIME_MS:
            alert = {"payment": payment.fields["id"], "here": country, "there": last.country}
            rows.append(OutputRow({**alert, "apart_ms": abs(at - last.at)}, at))
        if last is None or at >= last.at:
            last = CardLastSeen(country, at)
    return KeyUpdate(last, rows)


card_alerts = (
    read("cards", idle_after="5 seconds")
    .deduplicate(within="1 hour")
    .key("card")
    .stateful(
        flag_distant_payments,
        state=CardLastSeen,
        returns={"payment": "STRING", "here": "STRING", "there": "STRING", "apart_ms": "BIGINT"},
        forget_after="1 day",
    )
    .write("card_alerts", mode="log")
    .publish("card-alerts")
)

demo = Demo(
    last="15 minutes",
    step="30 seconds",
    note="How soon an alert is in the topic is [measured](../record_at_a_time.md#rules-that-remember).",
)
