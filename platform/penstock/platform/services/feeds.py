"""Opens feeds for the command line and for Dagster jobs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.core.clock import now_ms
from penstock.ingestion.contracts import list_contract_names, load_contract
from penstock.ingestion.errors import SourceOptionsError
from penstock.ingestion.feed import Feed
from penstock.ingestion.producer import KEY_PARTITIONER
from penstock.ingestion.producer.record_serde import create_record_format
from penstock.ingestion.sources.source_discovery import find_source_kind, open_source
from penstock.platform.services.schema_registry import open_schema_registry
from penstock.platform.settings import Settings

_PRODUCER_NAME_PATTERN = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class FeedRequest:
    """A source by name or `module:Class`, its options, and the topic, partitioner and producer to write with."""

    source: str
    topic: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    route: str = KEY_PARTITIONER
    producer: str = ""

    @property
    def target_topic(self) -> str:
        """The topic; by default the name of the source."""
        return self.topic or self.source

    @property
    def producer_name(self) -> str:
        """The name of the producer; by default the same for the same source, topic and location."""
        if self.producer:
            return _check_producer_name(self.producer)
        return find_source_kind(self.source).default_producer_name(self.target_topic, self.options)


def open_feed(settings: Settings, request: FeedRequest) -> Feed:
    """Return a feed that is ready to run. Its ledger is in the home folder, under the name of the producer."""
    if not request.topic and request.source not in list_contract_names():
        raise SourceOptionsError(
            f"Source '{request.source}' has no default topic. Name one, as in --topic sensors. "
            f"Topics: {', '.join(list_contract_names())}."
        )
    contract = load_contract(request.target_topic)
    registry = open_schema_registry(settings)
    folder = settings.home / "producers" / request.producer_name
    index_path = folder.with_name(f"{folder.name}.files")
    record_format = create_record_format(contract, registry)
    source = open_source(request.source, contract, record_format, now_ms, request.options, index_path)
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


def _check_producer_name(name: str) -> str:
    if not _PRODUCER_NAME_PATTERN.fullmatch(name):
        raise SourceOptionsError(
            f"'{name}' is not a valid producer name. Use letters, digits, '.', '-' and '_'."
        )
    return name
