"""Feeds from a source to a topic, for the command line and Dagster's jobs."""

import re
from dataclasses import dataclass
from pathlib import Path

from penstock.core.clock import now_ms
from penstock.ingestion.contracts import list_contract_names, load_contract
from penstock.ingestion.errors import SourceOptionsError
from penstock.ingestion.feed import Feed
from penstock.ingestion.producer import KEY_PARTITIONER
from penstock.ingestion.producer.record_format import create_record_format
from penstock.ingestion.sources.paced_replay import ReplayPace
from penstock.ingestion.sources.source_factory import SourceOptions, list_source_options, open_source
from penstock.platform.services.schema_registry import open_schema_registry
from penstock.platform.settings import Settings

_PRODUCER_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")
_DEFAULT_SEED = 1


@dataclass(frozen=True)
class FeedRequest:
    """A request for a feed: the source with its options, the topic, the partitioner and the producer's name."""

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
    route: str = KEY_PARTITIONER
    producer: str = ""

    @property
    def target_topic(self) -> str:
        """The target topic; by default the one with the source's name."""
        return self.topic or self.source

    @property
    def producer_name(self) -> str:
        """The producer's name; the default is the same for equal requests, so that they find their ledger."""
        if self.producer:
            return _check_producer_name(self.producer)
        if "seed" in list_source_options(self.source):
            return f"{self.target_topic}-{_DEFAULT_SEED if self.seed is None else self.seed}"
        place_slug = re.sub(r"[^A-Za-z0-9]+", "-", self.place.rstrip("/").rpartition("/")[2]).strip("-")
        return "-".join(part for part in (self.target_topic, self.source, place_slug) if part)


def open_feed(settings: Settings, request: FeedRequest) -> Feed:
    """Return a feed that is ready to run. Its ledger is in the home folder, under the producer's name."""
    if not request.topic and request.source not in list_contract_names():
        raise SourceOptionsError(
            f"source '{request.source}' needs a topic, for example --topic sensors; the folder of contracts lists "
            "them"
        )
    contract = load_contract(request.target_topic)
    registry = open_schema_registry(settings)
    folder = settings.home / "producers" / request.producer_name
    options = _build_source_options(request, folder.with_name(f"{folder.name}.files"))
    source = open_source(request.source, contract, create_record_format(contract, registry), now_ms, options)
    retention = contract.layout_for(settings.kafka.layout).retention_ms
    return Feed(
        source,
        contract,
        settings.kafka.bootstrap_servers,
        folder,
        now_ms,
        registry,
        request.route,
        client_settings=settings.kafka.client_config("ingestion"),
        retention_ms=None if retention < 0 else retention,
    )


def _build_source_options(request: FeedRequest, index_path: Path) -> SourceOptions:
    supported_options = list_source_options(request.source)
    is_generated = "rate" in supported_options
    seed = _DEFAULT_SEED if request.seed is None else request.seed
    if request.seed is not None and not is_generated and not request.disorder:
        raise SourceOptionsError(f"source '{request.source}' uses a seed only with disorder; remove the seed")
    return SourceOptions(
        request.place,
        seed if is_generated else 0,
        request.rate if is_generated else None,
        request.follow,
        index_path if "index" in supported_options else None,
        ReplayPace(
            request.speed,
            None if is_generated else request.rate,
            request.disorder,
            request.disorder_ms,
            seed if request.disorder else 0,
        ),
        request.replay_by,
        request.text,
    )


def _check_producer_name(name: str) -> str:
    if not _PRODUCER_NAME_PATTERN.fullmatch(name):
        raise SourceOptionsError(
            f"'{name}' is not a valid producer name; use letters, digits, dots, dashes and underscores"
        )
    return name
