"""Seeded, reproducible record generators for demos, tests and benchmarks."""

from collections.abc import Callable, Mapping

from penstock.ingestion.generators.advertising import AdClickGenerator, ImpressionGenerator
from penstock.ingestion.generators.card_limits import CardLimitGenerator
from penstock.ingestion.generators.cards import CardGenerator
from penstock.ingestion.generators.clicks import ClickGenerator
from penstock.ingestion.generators.generator import RecordGenerator, SendTimes, make_even_send_times
from penstock.ingestion.generators.lines import LineGenerator
from penstock.ingestion.generators.nexmark import (
    NexmarkAuctionGenerator,
    NexmarkBidGenerator,
    NexmarkPersonGenerator,
)
from penstock.ingestion.generators.numbers import NumberGenerator
from penstock.ingestion.generators.ovens import OvenGenerator
from penstock.ingestion.generators.queries import QueryGenerator
from penstock.ingestion.generators.sensors import SensorGenerator
from penstock.ingestion.generators.tweets import TweetGenerator

__all__ = ["GENERATORS", "RecordGenerator", "SendTimes", "SensorGenerator", "make_even_send_times"]

GENERATORS: Mapping[str, Callable[[int], RecordGenerator]] = {
    kind.topic: kind
    for kind in (
        SensorGenerator,
        CardGenerator,
        ClickGenerator,
        TweetGenerator,
        LineGenerator,
        QueryGenerator,
        OvenGenerator,
        NumberGenerator,
        ImpressionGenerator,
        AdClickGenerator,
        CardLimitGenerator,
        NexmarkPersonGenerator,
        NexmarkAuctionGenerator,
        NexmarkBidGenerator,
    )
}
