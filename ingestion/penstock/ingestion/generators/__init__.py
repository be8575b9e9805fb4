"""Seeded, reproducible records for demonstrations, tests and benchmarks."""

from collections.abc import Callable, Mapping

from penstock.ingestion.generators.advertising import AdClicks, Impressions
from penstock.ingestion.generators.blocks import Generator, Times, evenly
from penstock.ingestion.generators.cards import Cards
from penstock.ingestion.generators.clicks import Clicks
from penstock.ingestion.generators.limits import CardLimits
from penstock.ingestion.generators.lines import Lines
from penstock.ingestion.generators.nexmark import NexmarkAuctions, NexmarkBids, NexmarkPersons
from penstock.ingestion.generators.numbers import Numbers
from penstock.ingestion.generators.ovens import Ovens
from penstock.ingestion.generators.queries import Queries
from penstock.ingestion.generators.sensors import Sensors
from penstock.ingestion.generators.tweets import Tweets

__all__ = ["GENERATORS", "Generator", "Sensors", "Times", "evenly"]

GENERATORS: Mapping[str, Callable[[int], Generator]] = {
    kind.topic: kind
    for kind in (
        Sensors,
        Cards,
        Clicks,
        Tweets,
        Lines,
        Queries,
        Ovens,
        Numbers,
        Impressions,
        AdClicks,
        CardLimits,
        NexmarkPersons,
        NexmarkAuctions,
        NexmarkBids,
    )
}
