"""Reads quarantines for all viewers: what is read is kept for a few seconds, and until the next decision."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from penstock.ingestion.consumers.topic_sizes import count_stored_records
from penstock.ingestion.contracts import dead_letter_topic, list_contract_names
from penstock.ingestion.errors import TopicReadError
from penstock.platform.services.quarantine import TopicQuarantine
from penstock.platform.services.quarantine_decisions import read_known_statuses
from penstock.platform.settings import Settings
from penstock.quality.quarantine.quarantine_state import QuarantineState
from penstock.quality.quarantine.record_status import QuarantineStatus, count_states

KEEP_MS = 5_000


@dataclass(frozen=True)
class QuarantineReading:
    """The quarantined records of a topic, the newest first, and why its dead letters are missing; empty if not."""

    statuses: Sequence[QuarantineStatus]
    problem: str


@dataclass(frozen=True)
class TopicCounts:
    """A topic with the states of its quarantined records. `dead_letters` is None without a broker."""

    topic: str
    states: Mapping[QuarantineState, int]
    dead_letters: int | None

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the topic was ever refused."""
        return not any(self.states.values()) and not self.dead_letters


class QuarantineReader:
    """Returns readings that are at most a few seconds old."""

    def __init__(self, settings: Settings, clock: Callable[[], int]) -> None:
        self._settings, self._clock = settings, clock
        self._lock = threading.Lock()
        self._readings: dict[str, tuple[int, QuarantineReading]] = {}

    def open(self, topic: str) -> TopicQuarantine:
        """Return the quarantine of a topic, to decide about its records. Raises UnknownTopicError."""
        return TopicQuarantine(self._settings, topic)

    def read(self, topic: str) -> QuarantineReading:
        """Return the records of a topic. Raises UnknownTopicError if no contract has that name."""
        quarantine, now_ms = self.open(topic), self._clock()
        with self._lock:
            read_at_ms, reading = self._readings.get(topic, (-KEEP_MS, None))
            if reading is None or now_ms - read_at_ms >= KEEP_MS:
                statuses, problem = read_known_statuses(quarantine)
                reading = QuarantineReading(sorted(statuses, key=_arrival_order, reverse=True), problem)
                self._readings = {topic: (now_ms, reading), **self._list_current(topic, now_ms)}
            return reading

    def forget(self, topic: str) -> None:
        """Read a topic again for the next caller, because a decision changed it."""
        with self._lock:
            self._readings.pop(topic, None)

    def count_topics(self) -> list[TopicCounts]:
        """Return the counts of every topic of which something was refused."""
        topics = list_contract_names()
        dead_letters = self._count_dead_letters(topics)
        counts = [
            TopicCounts(
                topic,
                count_states(self.open(topic).list_quarantined()),
                None if dead_letters is None else dead_letters.get(dead_letter_topic(topic), 0),
            )
            for topic in topics
        ]
        return [each for each in counts if not each.is_empty]

    def _count_dead_letters(self, topics: Sequence[str]) -> Mapping[str, int] | None:
        kafka = self._settings.kafka
        names = [dead_letter_topic(topic) for topic in topics]
        try:
            return count_stored_records(kafka.bootstrap_servers, names, kafka.client_config("ingestion"))
        except TopicReadError:
            return None

    def _list_current(self, topic: str, now_ms: int) -> dict[str, tuple[int, QuarantineReading]]:
        """Return the readings of other topics that somebody still looks at."""
        return {
            name: entry
            for name, entry in self._readings.items()
            if name != topic and now_ms - entry[0] < KEEP_MS
        }


def _arrival_order(status: QuarantineStatus) -> tuple[float, int, int]:
    record = status.record
    arrived_s = 0.0 if record.arrived_at is None else record.arrived_at.timestamp()
    return arrived_s, record.position.partition, record.position.offset
