"""Remembers which topics a stream reads, by their ids.

The offsets of another topic of the same name mean other records.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from penstock.core.clock import Clock
from penstock.core.files import write_atomically
from penstock.core.kafka_client import BrokerAccess, create_admin_client, describe_kafka_error
from penstock.core.kafka_topics import fetch_topic_ids
from penstock.engine.errors import OtherTopicError, TopicUnavailableError
from penstock.engine.stream_folders import TOPIC_IDS_FILE

CHECK_INTERVAL_MS = 30_000


class TopicIdentity:
    """The ids of a stream's topics. They are stored with its journal at the first start.

    Promises that a stream does not start, and does not go on for more than `CHECK_INTERVAL_MS`, on a topic that was
    created again or that is in another cluster. A stream of version 0.1.0 takes the topics of its next start.
    """

    def __init__(
        self, stream: str, topics: Sequence[str], directory: Path, broker: BrokerAccess, clock: Clock
    ) -> None:
        self._stream = stream
        self._topics = topics
        self._file = directory / TOPIC_IDS_FILE
        self._broker = broker
        self._clock = clock
        self._checked_at_ms = 0
        self._admin: AdminClient | None = None

    def check_at_start(self, *, has_read: bool) -> None:
        """Compare the topics with the stored ids, and store new ones. A stream without a batch takes any topic."""
        stored_ids = self._read_ids() if has_read else {}
        current_ids = self._fetch_ids()
        self._refuse_others(stored_ids, current_ids)
        if current_ids != stored_ids:
            write_atomically(self._file, json.dumps(current_ids, indent=2) + "\n")

    def check_while_running(self) -> None:
        """Compare the topics with the stored ids, if the last comparison is long enough ago."""
        if self._clock() - self._checked_at_ms >= CHECK_INTERVAL_MS:
            self._refuse_others(self._read_ids(), self._fetch_ids())

    def _read_ids(self) -> Mapping[str, str]:
        ids: Mapping[str, str] = json.loads(self._file.read_text("utf-8")) if self._file.exists() else {}
        return ids

    def _fetch_ids(self) -> Mapping[str, str]:
        if self._admin is None:  # one for all comparisons: each client has threads and connections
            self._admin = create_admin_client(self._broker.bootstrap, self._broker.client_options)
        try:
            current_ids = fetch_topic_ids(self._admin, self._topics)
        except KafkaException as error:
            self._admin = None  # the brokers may have other addresses now
            is_missing = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            raise TopicUnavailableError(
                self._stream, self._topics, describe_kafka_error(error), is_missing=is_missing
            ) from error
        self._checked_at_ms = self._clock()
        return current_ids

    def _refuse_others(self, stored_ids: Mapping[str, str], current_ids: Mapping[str, str]) -> None:
        for topic, topic_id in current_ids.items():
            stored_id = stored_ids.get(topic, topic_id)
            if stored_id != topic_id:
                raise OtherTopicError(self._stream, topic, stored_id, topic_id)
