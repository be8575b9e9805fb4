"""The quarantine of a topic, for the command line and Dagster's jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from penstock.core.clock import now_ms
from penstock.core.names import explain_unknown_name
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.codec import contract_version
from penstock.ingestion.contracts import Contract, list_contract_names, load_contract
from penstock.ingestion.feed import Feed, FeedSummary
from penstock.ingestion.producer.record_format import create_record_format
from penstock.platform.errors import UnknownTopicError
from penstock.platform.services.schema_registry import open_schema_registry
from penstock.platform.services.stream_catalog import load_valid_plans
from penstock.platform.settings import Settings
from penstock.quality.ledger_rows import group_by_partition
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
from penstock.quality.table_reads import open_table


@dataclass(frozen=True)
class QuarantineReplayResult:
    """The result of a replay: the judgement of each record, and the summary of the producer."""

    judgement: ReplayJudgement
    decided_count: int
    summary: FeedSummary


class TopicQuarantine:
    """The quarantine of one topic. Raises UnknownTopicError if no contract has that name."""

    def __init__(self, settings: Settings, topic: str) -> None:
        if topic not in list_contract_names():
            raise UnknownTopicError(
                explain_unknown_name("topic", topic, list_contract_names(), "penstock topics list")
            )
        self.topic = topic
        self._settings = settings
        self._warehouse = settings.warehouse_path
        self._decision_log = DecisionLog(settings.home / "quarantine" / f"{topic}.jsonl")

    @property
    def contract(self) -> Contract:
        """The current contract of the topic."""
        return load_contract(self.topic)

    @property
    def producer_name(self) -> str:
        """The name of the producer that replays records."""
        return f"quarantine-{self.topic}"

    def list_statuses(self) -> list[QuarantineStatus]:
        """List the status of each quarantined record."""
        delivered_addresses = read_delivered_addresses(self._ledger_folder)
        return build_statuses(
            read_quarantine(self._warehouse, self.topic), self._decision_log.read_all(), delivered_addresses
        )

    def contract_versions(self) -> Mapping[str, str]:
        """Return the contract version that each stream validates with now, by stream."""
        return {
            plan.name: contract_version(source)
            for plan in load_valid_plans()
            for source in plan.sources
            if topic_of(source) == self.topic
        }

    def judge_replay(
        self, records: Sequence[QuarantinedRecord], repaired_values: Mapping[RecordPosition, bytes]
    ) -> ReplayJudgement:
        """Validate records with the current contract. Records no decision."""
        registry = open_schema_registry(self._settings)
        checker = create_record_format(self.contract, registry).checker
        return judge_records(
            records, repaired_values, checker, self._read_stream_reach(), self.contract_versions()
        )

    def replay(self, judgement: ReplayJudgement, reason: str) -> QuarantineReplayResult:
        """Record the decision to replay the valid records, and send every decided record that has not arrived."""
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
        """Record the decision to discard records; return the number of new decisions."""
        return len(self._decision_log.record(discard_decisions(records, now_ms(), reason)))

    @property
    def _ledger_folder(self) -> Path:
        return self._settings.home / "producers" / self.producer_name

    def _read_stream_reach(self) -> StreamReach:
        """Return the offsets that each started stream has read of the topic."""
        reach_by_stream: dict[str, Mapping[int, tuple[int, int]]] = {}
        for stream in self.contract_versions():
            table = open_table(self._warehouse / f"ledger/{stream}")
            if table is None:
                if (self._settings.home / "streams" / stream).exists():
                    reach_by_stream[stream] = {}  # started, but nothing committed yet
            else:
                ledger = table.to_pyarrow_table(columns=["topic", "partition", "batch_id", "start", "end"])
                reach_by_stream[stream] = {
                    partition: (rows.column("start")[0].as_py(), rows.column("end")[-1].as_py())
                    for (topic, partition), rows in group_by_partition(ledger)
                    if topic == self.topic
                }
        return reach_by_stream
