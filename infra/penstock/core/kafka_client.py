"""Common settings and errors of Kafka clients."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

KafkaClientSettings = Mapping[str, str | int | bool]
"""librdkafka settings for all clients of a cluster, such as TLS and SASL. They override our defaults."""

PLAINTEXT_CLIENT: KafkaClientSettings = {}
"""The settings for an unsecured cluster."""


@dataclass(frozen=True)
class BrokerAccess:
    """The address of the brokers, with the options of librdkafka and of Spark, which name them differently."""

    bootstrap: str
    client_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    spark_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def client_config(self) -> Mapping[str, str]:
        """The settings of a quiet client of librdkafka."""
        return {"bootstrap.servers": self.bootstrap, "log_level": "2", **self.client_options}


def create_admin_client(bootstrap: str, client_settings: KafkaClientSettings) -> "AdminClient":
    """Return a client for topics and groups. It logs nothing: problems are in its errors.

    Do not use `alter_consumer_group_offsets` in a process that must outlive its broker. Measured with librdkafka
    2.16.0 while a broker was killed and stopped repeatedly: that call aborts the process (assertion `eonce->refcnt
    > 0` in rd_kafka_enq_once_del_source_return), while `list_offsets` (9 outages, 102,440 failed requests) and
    `describe_topics` (3 outages, 220 failed requests) raise KafkaException. Commit offsets by a consumer instead.
    `list_topics` raises it too, from an admin client and from a consumer: 10 outages (killed, stopped, suspended,
    gone; 3,145 failed requests), and an address without a broker (3,705 failed requests).
    """
    from confluent_kafka.admin import AdminClient  # takes long to load, and the settings need this module

    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0, **client_settings})


def describe_kafka_error(error: "KafkaException") -> str:
    """Return the message of an error from the broker or the client library."""
    return str(error.args[0].str()) if error.args and hasattr(error.args[0], "str") else str(error)
