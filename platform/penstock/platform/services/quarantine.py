"""The quarantine of a topic, for the command line and Dagster's jobs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Event

from penstock.core.clock import now_ms
from penstock.core.names import explain_unknown_name
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.plan.codec import contract_version
from penstock.ingestion.consumers.topic_contents import read_topic
from penstock.ingestion.contracts import Contract, dead_letter_topic, list_contract_names, load_contract
from penstock.ingestion.errors import IngestionError
from penstock.ingestion.feed import Feed, FeedSummary
from penstock.ingestion.producer.record_serde import create_reading_checker, create_record_format
from penstock.platform.errors import UnknownTopicError
from penstock.platform.services.schema_registry import open_schema_registry
from penstock.platform.services.stream_catalog import load_valid_plans
from penstock.platform.settings import Settings
from penstock.quality.ledger_rows import group_by_partition
from penstock.quality.quarantine.dead_letters import to_quarantined_records
from penstock.quality.quarantine.decisions import DecisionLog, QuarantineDecision
from penstock.quality.quarantine.explanation import explain_record
from penstock.quality.quarantine.future_times import FutureTimeJudge, list_time_limits
from penstock.quality.quarantine.quarantined_records import (
    QuarantinedRecord,
    RecordOrigin,
    RecordPosition,
    read_quarantine,
)
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
    summaries: tuple[FeedSummary, ...]
    """The summaries of the producers that ran: of quarantined records, and of dead letters."""

    @property
    def sent_count(self) -> int:
        """The records that were sent and acknowledged."""
        return sum(summary.acknowledged_records for summary in self.summaries)

    @property
    def is_complete(self) -> bool:
        """Whether every decided record has arrived."""
        return all(summary.complete for summary in self.summaries)


class ReplayQueue:
    """The decisions about the invalid records of one topic, and the producer that replays them.

    Dead letters have a queue of their own: their positions are those of another topic.
    """

    def __init__(self, settings: Settings, source_topic: str) -> None:
        self._settings = settings
        self._decision_log = DecisionLog(settings.home / "quarantine" / f"{source_topic}.jsonl")
        self._ledger_folder = settings.home / "producers" / f"quarantine-{source_topic}"

    @property
    def has_decisions(self) -> bool:
        """Whether any decision was ever recorded."""
        return self._decision_log.path.exists()

    def build_statuses(self, records: Sequence[QuarantinedRecord]) -> list[QuarantineStatus]:
        """Return the status of each of these records."""
        delivered_addresses = read_delivered_addresses(self._ledger_folder)
        return build_statuses(records, self._decision_log.read_all(), delivered_addresses)

    def record(self, decisions: Sequence[QuarantineDecision]) -> int:
        """Record decisions, and return the number of new ones."""
        return len(self._decision_log.record(decisions)) if decisions else 0

    def send(self, contract: Contract) -> FeedSummary:
        """Send every record that is decided to be replayed and has not arrived."""
        feed = Feed(
            ReplayDecisionSource(self._decision_log),
            contract,
            self._settings.kafka.bootstrap_servers,
            self._ledger_folder,
            now_ms,
            open_schema_registry(self._settings),
            client_settings=self._settings.kafka.client_config("ingestion"),
            # The ledger counts the decisions, so it cannot start over.
            on_new_topic="refuse",
        )
        return feed.run(Event())


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
        self._queues: dict[RecordOrigin, ReplayQueue] = {
            "topic": ReplayQueue(settings, topic),
            "dead-letters": ReplayQueue(settings, dead_letter_topic(topic)),
        }

    @property
    def contract(self) -> Contract:
        """The current contract of the topic."""
        return load_contract(self.topic)

    def list_statuses(self) -> list[QuarantineStatus]:
        """List the status of each quarantined record and dead letter. Raises TopicReadError without a broker."""
        return [*self.list_quarantined(), *self.list_dead_letters()]

    def list_quarantined(self) -> list[QuarantineStatus]:
        """List the status of each record that streams quarantined."""
        return self._queues["topic"].build_statuses(read_quarantine(self._warehouse, self.topic))

    def list_dead_letters(self) -> list[QuarantineStatus]:
        """List the status of each dead letter of producers. Raises TopicReadError if the broker does not answer."""
        kafka = self._settings.kafka
        dead_letters = read_topic(
            kafka.bootstrap_servers, dead_letter_topic(self.topic), kafka.client_config("ingestion")
        )
        return self._queues["dead-letters"].build_statuses(
            list(to_quarantined_records(self.topic, dead_letters))
        )

    def contract_versions(self) -> Mapping[str, str]:
        """Return the contract version that each stream validates with now, by stream."""
        return {
            plan.name: contract_version(source)
            for plan in load_valid_plans()
            for source in plan.sources
            if topic_of(source) == self.topic
        }

    def explain_reasons(self, records: Sequence[QuarantinedRecord]) -> Mapping[RecordPosition, str]:
        """Return what is wrong with each record by the current contract."""
        try:
            checker = create_reading_checker(self.contract, open_schema_registry(self._settings))
        except IngestionError:
            return {}  # without its registry, a value cannot be read
        return {record.position: explain_record(record, checker) for record in records}

    def judge_replay(
        self, records: Sequence[QuarantinedRecord], repaired_values: Mapping[RecordPosition, bytes]
    ) -> ReplayJudgement:
        """Validate records with the current contract. Records no decision."""
        registry = open_schema_registry(self._settings)
        record_format = create_record_format(self.contract, registry)
        limits = list_time_limits(load_valid_plans(), self.topic)
        return judge_records(
            records,
            repaired_values,
            record_format.checker,
            self._read_stream_reach(),
            self.contract_versions(),
            FutureTimeJudge(self.contract, limits, now_ms(), record_format.decode_any),
        )

    def replay(self, judgement: ReplayJudgement, reason: str) -> QuarantineReplayResult:
        """Record the decision to replay the valid records, and send every decided record that has not arrived."""
        decided_count, summaries = 0, []
        for origin, queue in self._queues.items():
            accepted = tuple(pair for pair in judgement.accepted if pair[0].position.origin == origin)
            decisions = replay_decisions(replace(judgement, accepted=accepted), now_ms(), reason)
            decided_count += queue.record(decisions)
            if queue.has_decisions:
                summaries.append(queue.send(self.contract))
        return QuarantineReplayResult(judgement, decided_count, tuple(summaries))

    def discard(self, records: Sequence[QuarantinedRecord], reason: str) -> int:
        """Record the decision to discard records; return the number of new decisions."""
        return sum(
            queue.record(
                discard_decisions(
                    [record for record in records if record.position.origin == origin], now_ms(), reason
                )
            )
            for origin, queue in self._queues.items()
        )

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
