"""Feeds from network sources to topics of their own."""

import dataclasses
import time
from pathlib import Path

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.feed import Feed
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.sources import RecordSource
from penstock.ingestion.sources.source_discovery import find_source_kind, open_source
from penstock.ingestion.topics import ensure_topics

VALID_RECORD = b'{"id":"%d","device":"d%d","site":"s","at":1700000000000,"temperature":21.5}'


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def create_topic(broker: LocalBroker, name: str, like: str = "sensors") -> Contract:
    contract = dataclasses.replace(load_contract(like), topic=name)
    ensure_topics(broker.bootstrap, [contract])
    return contract


def open_network_source(kind: str, contract: Contract, location: str, **options: object) -> RecordSource:
    return open_source(
        kind,
        contract,
        create_record_format(contract),
        now_ms,
        {find_source_kind(kind).location: location, **options},
    )


def create_feed(broker: LocalBroker, contract: Contract, source: RecordSource, ledger: Path) -> Feed:
    return Feed(source, contract, broker.bootstrap, ledger, now_ms)
