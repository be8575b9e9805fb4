"""Cards that would have to travel faster than an aircraft between two successive payments.

Payments are compared in event-time order: they wait in the state of the card until the watermark has passed them.
So delayed payments do not change the result. A payment behind the watermark is ignored.
"""

from dataclasses import dataclass
from math import asin, cos, radians, sin, sqrt

from penstock.engine.functions.stateful import KeyContext, KeyedRecord, KeyUpdate, OutputRow, Timer
from penstock.pipelines.demonstration import Demo
from penstock.stream import read

CAPITALS = {
    "DE": (52.52, 13.40),
    "FR": (48.86, 2.35),
    "GB": (51.51, -0.13),
    "IT": (41.90, 12.50),
    "PL": (52.23, 21.01),
    "US": (38.90, -77.04),
}
"""Latitude and longitude of each capital, in degrees. A payment only has its country."""
EARTH_KM = 6_371.0
AIRCRAFT_KMH = 1_000.0
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class CardUse:
    """One use of a card."""

    at: int
    country: str
    payment: str


@dataclass(frozen=True)
class CardTravelState:
    """The last use behind the watermark, and the uses that wait for it."""

    last: CardUse | None = None
    pending: tuple[CardUse, ...] = ()


def flag_impossible_travel(context: KeyContext[CardTravelState]) -> KeyUpdate[CardTravelState]:
    """Return a row for each use that is too far from the previous one."""
    state, rows = context.state or CardTravelState(), []
    uses = sorted(
        [*state.pending, *map(as_card_use, context.records)],
        key=lambda card_use: (card_use.at, card_use.payment),
    )
    settled_uses = [card_use for card_use in uses if card_use.at < context.watermark]
    last = state.last
    for card_use in settled_uses:
        if last is not None and card_use.at < last.at:
            continue
        if last is not None and (row := impossible_travel_row(last, card_use)) is not None:
            rows.append(row)
        last = card_use
    pending = tuple(uses[len(settled_uses) :])
    return KeyUpdate(CardTravelState(last, pending), rows, [Timer(pending[0].at + 1)] if pending else [])


def as_card_use(payment: KeyedRecord) -> CardUse:
    """Convert a payment to a use of its card."""
    return CardUse(payment.time, payment.fields["country"], payment.fields["id"])


def impossible_travel_row(before: CardUse, after: CardUse) -> OutputRow | None:
    """Return a row if the travel from one use to the next is faster than an aircraft."""
    km = distance_km(CAPITALS[before.country], CAPITALS[after.country])
    hours = (after.at - before.at) / HOUR_MS
    if km <= AIRCRAFT_KMH * hours:
        return None
    travel_row = {
        "payment": after.payment,
        "previous_payment": before.payment,
        "previous_country": before.country,
        "country": after.country,
    }
    return OutputRow({**travel_row, "km": round(km), "minutes": round(60 * hours, 1)}, after.at)


def distance_km(origin: tuple[float, float], destination: tuple[float, float]) -> float:
    """Return the great-circle distance in kilometres."""
    (north, east), (other_north, other_east) = (
        [radians(part) for part in coordinates] for coordinates in (origin, destination)
    )
    height = sin((other_north - north) / 2) ** 2
    width = cos(north) * cos(other_north) * sin((other_east - east) / 2) ** 2
    return 2 * EARTH_KM * asin(sqrt(height + width))


card_travel = (
    read("cards", idle_after="5 seconds")
    .sql("SELECT * FROM input WHERE country IN ('DE', 'FR', 'GB', 'IT', 'PL', 'US')")
    .deduplicate(within="1 hour")
    .key("card")
    .stateful(
        flag_impossible_travel,
        state=CardTravelState,
        returns={
            "payment": "STRING",
            "previous_payment": "STRING",
            "previous_country": "STRING",
            "country": "STRING",
            "km": "BIGINT",
            "minutes": "DOUBLE",
        },
        forget_after="1 day",
    )
    .write("card_travel", mode="log")
)

demo = Demo(last="15 minutes", step="30 seconds")
