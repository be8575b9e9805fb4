"""The quarantine of a topic from settings: as people and Dagster's jobs ask for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from penstock.ingestion.contracts import Contract, contract_names, load_contract
from penstock.ingestion.feed import Feed, Summary
from penstock.ingestion.producer.formats import format_of
from penstock.pipelines.batch.inputs import topic_of
from penstock.pipelines.plan.codec import contract_version
from penstock.platform.clock import now_ms
from penstock.platform.errors import UnknownStreamError
from penstock.platform.registry import registry_of
from penstock.platform.settings import Settings
from penstock.platform.streams import sound_plans
from penstock.quality.audit.chain import by_partition
from penstock.quality.audit.tables import opened_table
from penstock.quality.quarantine.decisions import Decisions
from penstock.quality.quarantine.records import Place, Quarantined, quarantined
from penstock.quality.quarantine.replay import (
    Decided,
    Judgement,
    Reached,
    decisions_of,
    discards,
    judge,
)
from penstock.quality.quarantine.standing import Standing, delivered_by, standings


@dataclass(frozen=True)
class Replayed:
    """What came of sending records again: what was judged, and what the producer did."""

    judgement: Judgement
    taken: int
    summary: Summary


class Quarantine:
    """The quarantine of one topic; UnknownStreamError where there is no contract of that name."""

    def __init__(self, settings: Settings, topic: str) -> None:
        if topic not in contract_names():
            raise UnknownStreamError(f"there is no topic {topic!r}; there are: {', '.join(contract_names())}")
        self.topic = topic
        self._settings = settings
        self._warehouse = settings.tables
        self._decisions = Decisions(settings.home / "quarantine" / f"{topic}.jsonl")

    @property
    def contract(self) -> Contract:
        """The topic's contract, as it is now."""
        return load_contract(self.topic)

    @property
    def producer(self) -> str:
        """The name of the producer by which records are sent again."""
        return f"quarantine-{self.topic}"

    def standings(self) -> list[Standing]:
        """How each record of the quarantine stands."""
        delivered = delivered_by(self._ledger)
        return standings(quarantined(self._warehouse, self.topic), self._decisions.all(), delivered)

    def versions(self) -> Mapping[str, str]:
        """The version of the contract by which each stream judges now."""
        return {
            plan.name: contract_version(source)
            for plan in sound_plans()
            for source in plan.sources
            if topic_of(source) == self.topic
        }

    def judge(self, records: Sequence[Quarantined], repaired: Mapping[Place, bytes]) -> Judgement:
        """Judge records by the contract of today; nothing is decided."""
        registry = registry_of(self._settings)
        checker = format_of(self.contract, registry).checker
        return judge(records, repaired, checker, self._reached(), self.versions())

    def replay(self, judgement: Judgement, why: str) -> Replayed:
        """Decide that what is good is sent again, and send all that was ever decided and has not arrived."""
        taken = self._decisions.take(decisions_of(judgement, now_ms(), why))
        feed = Feed(
            Decided(self._decisions),
            self.contract,
            self._settings.kafka.servers,
            self._ledger,
            now_ms,
            registry_of(self._settings),
            client=self._settings.kafka.client("ingestion"),
        )
        return Replayed(judgement, len(taken), feed.run(Event()))

    def discard(self, records: Sequence[Quarantined], why: str) -> int:
        """Decide that records are given up; return of how many this was not decided before."""
        return len(self._decisions.take(discards(records, now_ms(), why)))

    @property
    def _ledger(self) -> Path:
        return self._settings.home / "producers" / self.producer

    def _reached(self) -> Reached:
        """How far each stream that reads the topic, or has begun to, has read it."""
        found: dict[str, Mapping[int, tuple[int, int]]] = {}
        for stream in self.versions():
            table = opened_table(self._warehouse / f"ledger/{stream}")
            if table is None:
                if (self._settings.home / "streams" / stream).exists():
                    found[stream] = {}  # it has begun, and says nothing yet
            else:
                ledger = table.to_pyarrow_table(columns=["topic", "partition", "batch_id", "start", "end"])
                found[stream] = {
                    partition: (rows.column("start")[0].as_py(), rows.column("end")[-1].as_py())
                    for (topic, partition), rows in by_partition(ledger)
                    if topic == self.topic
                }
        return found
