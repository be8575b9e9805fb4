"""Alerts for cards that are used in two countries within 15 minutes.

A stateful function keeps the last country in which each card was used. A late payment that is older than the last
use is checked as well, but does not change the state.
"""

from dataclasses import dataclass

from penstock.engine.functions.stateful import KeyContext, KeyUpdate, OutputRow
from penstock.pipelines.demonstration import Demo
from penstock.stream import read

MIN_TRAVEL_TIME_MS = 15 * 60_000
"""The minimum time to travel from one country to another."""


@dataclass(frozen=True)
class CardLastSeen:
    """The country and the time of the last use of a card."""

    country: str
    at: int


def flag_distant_payments(context: KeyContext[CardLastSeen]) -> KeyUpdate[CardLastSeen]:
    """Return a row for each payment within 15 minutes of a payment in another country."""
    last, rows = context.state, []
    for payment in context.records:
        country, at = payment.fields["country"], payment.time
        if last is not None and country != last.country and abs(at - last.at) <= MIN_TRAVEL_TIME_MS:
            alert = {"payment": payment.fields["id"], "country": country, "previous_country": last.country}
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
        returns={
            "payment": "STRING",
            "country": "STRING",
            "previous_country": "STRING",
            "apart_ms": "BIGINT",
        },
        forget_after="1 day",
    )
    .write("card_alerts", mode="log")
    .publish("card-alerts")
)

demo = Demo(
    last="15 minutes",
    step="30 seconds",
    note="How soon an alert reaches the topic is [measured](../record_at_a_time.md#rules-with-state).",
)
