"""The quarantine of a topic from settings: as people and Dagster's jobs ask for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from penstock.core.clock import now_ms
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.codec import contract_version
from penstock.ingestion.contracts import Contract, list_contract_names, load_contract
from penstock.ingestion.feed import Feed, FeedSummary
from penstock.ingestion.producer.record_format import create_record_format
from penstock.platform.errors import UnknownStreamError
from penstock.platform.services.schema_registry import open_schema_registry
from penstock.platform.services.stream_catalog import load_valid_plans
from penstock.platform.settings import Settings
from penstock.quality.audit.ledger_continuity import group_by_partition
from penstock.quality.audit.table_reads import open_table
from penstock.quality.quarantine.decisions import DecisionLog
from penstock.quality.quarantine.quarantined_records import QuarantinedRecord, RecordPosition, read_quarantine
from penstock.quality.quarantine.record_status import (
    QuarantineStatus,
    build_statuses,
    read_delivered_addresses,
)
from penstock.quality.quarantine.replay import (
    ReplayDecisionSource,
    ReplayJudgement,
    StreamReach,
    discard_decisions,
    judge_records,
    replay_decisions,
)


@dataclass(frozen=True)
class QuarantineReplayResult:
    """What came of sending records again: what was judged, and what the producer did."""

    judgement: ReplayJudgement
    decided_count: int
    summary: FeedSummary


class TopicQuarantine:
    """The quarantine of one topic; UnknownStreamError where there is no contract of that name."""

    def __init__(self, settings: Settings, topic: str) -> None:
        if topic not in list_contract_names():
            raise UnknownStreamError(
                f"there is no topic {topic!r}; there are: {', '.join(list_contract_names())}"
            )
        self.topic = topic
        self._settings = settings
        self._warehouse = settings.warehouse_path
        self._decision_log = DecisionLog(settings.home / "quarantine" / f"{topic}.jsonl")

    @property
    def contract(self) -> Contract:
        """The topic's contract, as it is now."""
        return load_contract(self.topic)

    @property
    def producer_name(self) -> str:
        """The name of the producer by which records are sent again."""
        return f"quarantine-{self.topic}"

    def list_statuses(self) -> list[QuarantineStatus]:
        """How each record of the quarantine stands."""
        delivered_addresses = read_delivered_addresses(self._ledger_folder)
        return build_statuses(
            read_quarantine(self._warehouse, self.topic), self._decision_log.read_all(), delivered_addresses
        )

    def contract_versions(self) -> Mapping[str, str]:
        """The version of the contract by which each stream judges now."""
        return {
            plan.name: contract_version(source)
            for plan in load_valid_plans()
            for source in plan.sources
            if topic_of(source) == self.topic
        }

    def judge_replay(
        self, records: Sequence[QuarantinedRecord], repaired_values: Mapping[RecordPosition, bytes]
    ) -> ReplayJudgement:
        """Judge records by the contract of today; nothing is decided."""
        registry = open_schema_registry(self._settings)
        checker = create_record_format(self.contract, registry).checker
        return judge_records(
            records, repaired_values, checker, self._read_stream_reach(), self.contract_versions()
        )

    def replay(self, judgement: ReplayJudgement, reason: str) -> QuarantineReplayResult:
        """Decide that what is good is sent again, and send all that was ever decided and has not arrived."""
        new_decisions = self._decision_log.record(replay_decisions(judgement, now_ms(), reason))
        feed = Feed(
            ReplayDecisionSource(self._decision_log),
            self.contract,
            self._settings.kafka.bootstrap_servers,
            self._ledger_folder,
            now_ms,
            open_schema_registry(self._settings),
            client_settings=self._settings.kafka.client_config("ingestion"),
        )
        return QuarantineReplayResult(judgement, len(new_decisions), feed.run(Event()))

    def discard(self, records: Sequence[QuarantinedRecord], reason: str) -> int:
        """Decide that records are given up; return of how many this was not decided before."""
        return len(self._decision_log.record(discard_decisions(records, now_ms(), reason)))

    @property
    def _ledger_folder(self) -> Path:
        return self._settings.home / "producers" / self.producer_name

    def _read_stream_reach(self) -> StreamReach:
        """How far each stream that reads the topic, or has begun to, has read it."""
        reach_by_stream: dict[str, Mapping[int, tuple[int, int]]] = {}
        for stream in self.contract_versions():
            table = open_table(self._warehouse / f"ledger/{stream}")
            if table is None:
                if (self._settings.home / "streams" / stream).exists():
                    reach_by_stream[stream] = {}  # it has begun, and says nothing yet
            else:
                ledger = table.to_pyarrow_table(columns=["topic", "partition", "batch_id", "start", "end"])
                reach_by_stream[stream] = {
                    partition: (rows.column("start")[0].as_py(), rows.column("end")[-1].as_py())
                    for (topic, partition), rows in group_by_partition(ledger)
                    if topic == self.topic
                }
        return reach_by_stream
