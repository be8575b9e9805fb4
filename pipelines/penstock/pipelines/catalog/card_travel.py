"""How fast a card would have had to travel from one use to the next, where that is faster than an aircraft.

Successive means in the order of use, not of arrival: payments wait in the card's memory until the watermark says
that none can come before them any more. So a payment that was held up on its way changes nothing; one that comes
behind the watermark is compared with nothing, and nothing with it.
"""

from dataclasses import dataclass
from math import asin, cos, radians, sin, sqrt

from penstock.pipelines.demonstration import Demo
from penstock.pipelines.model import read
from penstock.pipelines.remembering import Answer, Call, Read, Row, Timer

CAPITALS = {
    "DE": (52.52, 13.40),
    "FR": (48.86, 2.35),
    "GB": (51.51, -0.13),
    "IT": (41.90, 12.50),
    "PL": (52.23, 21.01),
    "US": (38.90, -77.04),
}
"""Where a country is, in degrees: all that a payment says is the country."""
EARTH_KM = 6_371.0
AIRCRAFT_KMH = 1_000.0
HOUR = 3_600_000


@dataclass(frozen=True)
class Use:
    """One use of a card."""

    at: int
    country: str
    payment: str


@dataclass(frozen=True)
class Travel:
    """The last use that is certain, and those that others may still come before."""

    last: Use | None = None
    waiting: tuple[Use, ...] = ()


def travelled(call: Call[Travel]) -> Answer[Travel]:
    """A row for each use that is too far from the one before it."""
    known, rows = call.state or Travel(), []
    uses = sorted([*known.waiting, *map(use, call.records)], key=lambda each: (each.at, each.payment))
    certain = [each for each in uses if each.at < call.watermark]
    last = known.last
    for each in certain:
        if last is not None and each.at < last.at:
            continue
        if last is not None and (row := too_fast(last, each)) is not None:
            rows.append(row)
        last = each
    waiting = tuple(uses[len(certain) :])
    return Answer(Travel(last, waiting), rows, [Timer(waiting[0].at + 1)] if waiting else [])


def use(payment: Read) -> Use:
    """A payment as a use of its card."""
    return Use(payment.time, payment.fields["country"], payment.fields["id"])


def too_fast(before: Use, after: Use) -> Row | None:
    """A row for two uses between which nobody can travel."""
    km = distance(CAPITALS[before.country], CAPITALS[after.country])
    hours = (after.at - before.at) / HOUR
    if km <= AIRCRAFT_KMH * hours:
        return None
    told = {
        "payment": after.payment,
        "after": before.payment,
        "came_from": before.country,
        "used_in": after.country,
    }
    return Row({**told, "km": round(km), "minutes": round(60 * hours, 1)}, after.at)


def distance(here: tuple[float, float], there: tuple[float, float]) -> float:
    """Kilometres between two places, over the ground."""
    (north, east), (other_north, other_east) = ([radians(part) for part in place] for place in (here, there))
    height = sin((other_north - north) / 2) ** 2
    width = cos(north) * cos(other_north) * sin((other_east - east) / 2) ** 2
    return 2 * EARTH_KM * asin(sqrt(height + width))


card_travel = (
    read("cards", idle_after="5 seconds")
    .sql("SELECT * FROM input WHERE country IN ('DE', 'FR', 'GB', 'IT', 'PL', 'US')")
    .deduplicate(within="1 hour")
    .key("card")
    .remember(
        travelled,
        state=Travel,
        returns={
            "payment": "STRING",
            "after": "STRING",
            "came_from": "STRING",
            "used_in": "STRING",
            "km": "BIGINT",
            "minutes": "DOUBLE",
        },
        forget_after="1 day",
    )
    .write("card_travel", mode="log")
)

demo = Demo(last="15 minutes", step="30 seconds")
