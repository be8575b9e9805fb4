"""Reads records of topics for pages, decoded by the contract of the topic."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from penstock.core.kafka_client import KafkaClientSettings
from penstock.ingestion.consumers.topic_contents import StoredRecord
from penstock.ingestion.consumers.topic_slices import open_topic_slices
from penstock.ingestion.contracts import Contract, load_contract
from penstock.ingestion.errors import IgnoredRecordError, IngestionError, InvalidRecordError
from penstock.ingestion.producer.record_serde import create_reading_serde
from penstock.platform.console.pane_reading import EventRecord
from penstock.platform.services.schema_registry import open_schema_registry
from penstock.platform.settings import Settings

MAX_RECORDS_PER_PARTITION = 2_000
REFRESH_MS = 3_000
DecodeRecord = Callable[[bytes], msgspec.Struct]


@dataclass(frozen=True)
class DecodedRecord:
    """A record with its fields, or why it has none."""

    record: StoredRecord
    fields: Mapping[str, Any]
    problem: str = ""

    @property
    def key_text(self) -> str:
        """The key as text."""
        return "" if self.record.key is None else self.record.key.decode("utf-8", "backslashreplace")

    @property
    def value_text(self) -> str:
        """The fields as JSON; for an invalid record its bytes as text."""
        if not self.problem:
            return msgspec.json.encode(self.fields).decode()
        return (self.record.value or b"").decode("utf-8", "backslashreplace")


def open_decoder(settings: Settings, contract: Contract) -> DecodeRecord:
    """Return what decodes the values of a topic; it registers nothing."""
    return create_reading_serde(contract, open_schema_registry(settings)).decode


def decode_record(decode: DecodeRecord, record: StoredRecord) -> DecodedRecord:
    """Decode a record. An invalid one keeps its reason."""
    if record.value is None:
        return DecodedRecord(record, {}, "no value (a tombstone)")
    try:
        return DecodedRecord(record, msgspec.to_builtins(decode(record.value)))
    except (InvalidRecordError, IgnoredRecordError) as error:
        return DecodedRecord(record, {}, str(error))


def find_event_time_ms(contract: Contract, record: msgspec.Struct) -> int | None:
    """Return the event time of a decoded record; None if its contract has none."""
    if contract.event_time is None:
        return None
    value = getattr(record, contract.event_time)
    return contract.get_field(contract.event_time).parsed_type.to_epoch_ms(value)


@dataclass
class _FollowedTopic:
    """The records of a topic that were read so far, and the offsets of the next ones."""

    read_at_ms: int = 0
    next_offsets: dict[int, int] = field(default_factory=dict)
    records: list[EventRecord] = field(default_factory=list)


class RecentRecords:
    """The recent records of topics, for diagrams. What was read is kept, so that each look reads only new records.

    Of a topic with many records, only some of each interval are read.
    """

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        self._settings, self._clock = settings, clock
        self._lock = threading.Lock()
        self._topics: dict[tuple[str, int], _FollowedTopic] = {}

    def read(self, topic: str, span_ms: int) -> Sequence[EventRecord]:
        """Return the records of the last interval; none if the topic or the broker cannot be read now."""
        with self._lock:
            self._forget_unused()
            followed = self._topics.setdefault((topic, span_ms), _FollowedTopic())
            now_ms = self._clock()
            if now_ms - followed.read_at_ms >= REFRESH_MS:
                followed.read_at_ms = now_ms
                try:
                    self._read_new(topic, followed, now_ms - span_ms)
                except IngestionError:
                    return followed.records  # the state of the stream says what is wrong
            followed.records = [record for record in followed.records if record[1] >= now_ms - span_ms]
            return followed.records

    def list_known(self, topic: str, span_ms: int) -> Sequence[EventRecord]:
        """Return what was read already, without asking the broker, for the first view of a page."""
        followed = self._topics.get((topic, span_ms))
        return [] if followed is None else followed.records

    def _forget_unused(self) -> None:
        oldest_ms = self._clock() - 10 * REFRESH_MS
        self._topics = {name: one for name, one in self._topics.items() if one.read_at_ms >= oldest_ms}

    def _read_new(self, topic: str, followed: _FollowedTopic, since_ms: int) -> None:
        kafka, contract = self._settings.kafka, load_contract(topic)
        decode = open_decoder(self._settings, contract)
        client: KafkaClientSettings = kafka.client_config("host")
        with open_topic_slices(kafka.bootstrap_servers, topic, client) as slices:
            starts = followed.next_offsets or slices.find_offsets_at(since_ms)
            newest = slices.find_newest_offsets(MAX_RECORDS_PER_PARTITION)
            found = slices.read(
                {partition: max(start, newest[partition]) for partition, start in starts.items()},
                MAX_RECORDS_PER_PARTITION,
            )
            followed.next_offsets = dict(slices.end_offsets)
        for record in found:
            if record.value is None or record.arrived_ms is None:
                continue
            try:
                decoded = decode(record.value)
            except (InvalidRecordError, IgnoredRecordError):
                continue  # the quarantine of the stream has the invalid ones
            event_ms = find_event_time_ms(contract, decoded)
            if event_ms is not None:
                followed.records.append((event_ms, record.arrived_ms, msgspec.to_builtins(decoded)))
