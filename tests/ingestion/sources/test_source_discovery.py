"""Sources outside of the source tree, found by `module:Class` or by an entry point."""

import dataclasses
import json
import time
from pathlib import Path
from threading import Event

import pytest
from tests.ingestion.topic_reading import read_topic
from tests.installed_kinds import forget_kinds, install_entry_points, write_modules

from penstock.infra.local_broker import LocalBroker
from penstock.ingestion.contracts import load_contract
from penstock.ingestion.errors import SourceOptionsError
from penstock.ingestion.feed import Feed, FeedLimits
from penstock.ingestion.generators import GENERATORS
from penstock.ingestion.ledger import read_ledger_state
from penstock.ingestion.producer import create_record_format
from penstock.ingestion.sources.source_discovery import (
    SOURCE_KINDS,
    discover_source_kinds,
    find_source_kind,
    list_source_options,
    open_source,
)
from penstock.ingestion.topics import ensure_topics

USER_SOURCE = '''
from penstock.ingestion.producer import SourceBatch
from penstock.ingestion.sources import ReplayableSource, SourceKind, SourceOption


class CounterSource(ReplayableSource, SourceKind):
    """Readings with ascending ids."""

    kind = "counter"
    options = (
        SourceOption("limit", "The number of records.", int, is_required=True),
        SourceOption("site", "The site of the readings."),
    )

    def __init__(self, limit, site):
        self.description = f"counter up to {limit}"
        self._limit, self._site = limit, site

    @classmethod
    def open(cls, context):
        return cls(context.options["limit"], context.options.get("site", "s"))

    def read(self, position):
        for first in range(position or 0, self._limit, 100):
            numbers = range(first, min(first + 100, self._limit))
            values = [f'{{"id":"{n}","device":"d{n % 5}","site":"{self._site}","at":{n}}}' for n in numbers]
            yield SourceBatch([value.encode() for value in values], first)
'''


@pytest.fixture
def user_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    write_modules(tmp_path, monkeypatch, user_sources=USER_SOURCE)
    return "user_sources"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.kafka
def test_a_source_outside_of_the_tree_is_ingested_and_resumed(
    broker: LocalBroker, user_module: str, tmp_path: Path
):
    contract = dataclasses.replace(load_contract("sensors"), topic="own-source")
    ensure_topics(broker.bootstrap, [contract])
    name = f"{user_module}:CounterSource"

    def run_feed(count: int | None) -> int:
        source = open_source(name, contract, create_record_format(contract), now_ms, {"limit": "950"})
        feed = Feed(source, contract, broker.bootstrap, tmp_path / "ledger", now_ms)
        return feed.run(Event(), limits=FeedLimits(count=count, finish_ms=60_000)).acknowledged_records

    assert run_feed(420) == 420
    assert run_feed(None) == 530
    ids = sorted(int(json.loads(record.value)["id"]) for record in read_topic(broker.bootstrap, "own-source"))
    assert ids == list(range(950))
    assert read_ledger_state(tmp_path / "ledger").acknowledged_until == 950


def test_a_source_is_found_by_its_entry_point(user_module: str, tmp_path: Path):
    install_entry_points(
        tmp_path, "penstock.sources", counter=f"{user_module}:CounterSource", broken="no_such_module:Source"
    )
    forget_kinds(SOURCE_KINDS)
    try:
        assert find_source_kind("counter").summarize() == "Readings with ascending ids."
        assert "broken" not in discover_source_kinds()
        names = [option.name for option in list_source_options()]
        assert {"limit", "site", "path"} < set(names)
    finally:
        forget_kinds(SOURCE_KINDS)


def test_invalid_options_and_classes_are_refused_with_the_fix(user_module: str):
    contract = load_contract("sensors")
    record_format = create_record_format(contract)
    for name, options, problem in (
        (f"{user_module}:CounterSource", {}, r"needs the option --limit: The number of records\."),
        (f"{user_module}:CounterSource", {"limit": "many"}, r"Option --limit: 'many' is invalid"),
        (
            f"{user_module}:CounterSource",
            {"limit": 1, "most": 1},
            r"no option --most .*Options: --limit, --site",
        ),
        (f"{user_module}:NoSuchSource", {}, "cannot be loaded"),
        ("no_such_module:Source", {}, "cannot be loaded"),
        ("json:JSONDecoder", {}, "Derive the class from SourceKind"),
        ("sensor", {}, "Did you mean 'sensors'"),
    ):
        with pytest.raises(SourceOptionsError, match=problem):
            open_source(name, contract, record_format, now_ms, options)


def test_every_source_kind_and_option_has_a_help_text():
    kinds = discover_source_kinds()
    assert {
        "csv",
        "json-lines",
        "text",
        "parquet",
        "log",
        "access-log",
        "http",
        "sse",
        "socket",
        "flights",
    } < set(kinds)
    assert set(GENERATORS) < set(kinds)
    for kind in kinds.values():
        assert kind.summarize().endswith(".")
        assert all(option.help.endswith(".") for option in kind.options)
