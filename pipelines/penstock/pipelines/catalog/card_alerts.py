"""Cards that cannot be where they are: used in two countries within a quarter of an hour.

A card's payments come to a function that remembers the last country in which the card was used. A payment that is
older than that one, because it came late, changes nothing that is remembered; it is judged all the same.
"""

from dataclasses import dataclass

from penstock.pipelines.demonstration import Demo
from penstock.pipelines.model import read
from penstock.pipelines.remembering import Answer, Call, Row

NEAR = 15 * 60_000
"""Milliseconds in which nobody gets from one country to another."""


@dataclass(frozen=True)
class LastSeen:
    """Where and when a card was seen last."""

    country: str
    at: int


def elsewhere(call: Call[LastSeen]) -> Answer[LastSeen]:
    """A row for each payment that is too near in time to one in another country."""
    last, rows = call.state, []
    for payment in call.records:
        country, at = payment.fields["country"], payment.time
        if last is not None and country != last.country and abs(at - last.at) <= NEAR:
            told = {"payment": payment.fields["id"], "here": country, "there": last.country}
            rows.append(Row({**told, "apart_ms": abs(at - last.at)}, at))
        if last is None or at >= last.at:
            last = LastSeen(country, at)
    return Answer(last, rows)


card_alerts = (
    read("cards", idle_after="5 seconds")
    .deduplicate(within="1 hour")
    .key("card")
    .remember(
        elsewhere,
        state=LastSeen,
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
