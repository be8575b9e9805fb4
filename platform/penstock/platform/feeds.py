"""A feed from settings and a few words, as the command line and Dagster's jobs ask for it."""

import re
from dataclasses import dataclass
from pathlib import Path

from penstock.ingestion.contracts import contract_names, load_contract
from penstock.ingestion.errors import SourceOptionsError
from penstock.ingestion.feed import Feed
from penstock.ingestion.producer import BY_KEY
from penstock.ingestion.producer.formats import format_of
from penstock.ingestion.sources.opening import SourceOptions, open_source, options_of
from penstock.ingestion.sources.replay import Pace
from penstock.platform.clock import now_ms
from penstock.platform.registry import registry_of
from penstock.platform.settings import Settings

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_FIRST_SEED = 1


@dataclass(frozen=True)
class FeedOrder:
    """What is asked for: a source and its options, the topic, and how it is written there."""

    source: str
    topic: str = ""
    place: str = ""
    rate: float | None = None
    speed: float | None = None
    disorder: float = 0.0
    disorder_ms: int = 0
    replay_by: str | None = None
    seed: int | None = None
    follow: bool = False
    text: bool = False
    route: str = BY_KEY
    producer: str = ""

    @property
    def into(self) -> str:
        """The topic; that of the source's own name where none is given."""
        return self.topic or self.source

    @property
    def name(self) -> str:
        """The producer's name: what is given, or one by which the same order finds its ledger again."""
        if self.producer:
            return _usable(self.producer)
        if "seed" in options_of(self.source):
            return f"{self.into}-{_FIRST_SEED if self.seed is None else self.seed}"
        place = re.sub(r"[^A-Za-z0-9]+", "-", self.place.rstrip("/").rpartition("/")[2]).strip("-")
        return "-".join(part for part in (self.into, self.source, place) if part)


def open_feed(settings: Settings, order: FeedOrder) -> Feed:
    """Make a feed ready to be run; its ledger is in the home folder, by the producer's name."""
    if not order.topic and order.source not in contract_names():
        raise SourceOptionsError(
            f"source '{order.source}' has no topic of its own: name one, as in --topic sensors; "
            f"there are {', '.join(contract_names())}"
        )
    contract = load_contract(order.into)
    registry = registry_of(settings)
    folder = settings.home / "producers" / order.name
    options = _options(order, folder.with_name(f"{folder.name}.files"))
    source = open_source(order.source, contract, format_of(contract, registry), now_ms, options)
    retention = contract.layout_in(settings.kafka.layout).retention_ms
    return Feed(
        source,
        contract,
        settings.kafka.servers,
        folder,
        now_ms,
        registry,
        order.route,
        client=settings.kafka.client("ingestion"),
        keep_ms=None if retention < 0 else retention,
    )


def _options(order: FeedOrder, index: Path) -> SourceOptions:
    takes = options_of(order.source)
    makes = "rate" in takes
    seed = _FIRST_SEED if order.seed is None else order.seed
    if order.seed is not None and not makes and not order.disorder:
        raise SourceOptionsError(
            f"source '{order.source}' has nothing random without disorder: leave the seed out"
        )
    return SourceOptions(
        order.place,
        seed if makes else 0,
        order.rate if makes else None,
        order.follow,
        index if "index" in takes else None,
        Pace(
            order.speed,
            None if makes else order.rate,
            order.disorder,
            order.disorder_ms,
            seed if order.disorder else 0,
        ),
        order.replay_by,
        order.text,
    )


def _usable(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise SourceOptionsError(
            f"'{name}' is no name for a producer: name it with letters, digits, dots, dashes and _"
        )
    return name
