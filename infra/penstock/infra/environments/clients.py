"""How clients log in to an environment's Kafka, in the words of librdkafka and of Spark's JVM.

Passwords are read from files when a client is made, and are in what is returned: hand it to the client, and
show it to nobody.
"""

from __future__ import annotations

from pathlib import Path

from penstock.infra.environments.errors import EnvironmentFailedError
from penstock.infra.environments.outputs import Kafka

_JAAS = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="{}" password="{}";'


def kafka_client(kafka: Kafka, user: str) -> dict[str, str]:
    """Settings of a client of librdkafka, which the producer, the host and the topics' code all are."""
    settings = {"bootstrap.servers": kafka.bootstrap, "security.protocol": kafka.security.protocol}
    if kafka.security.mechanism:
        settings |= {
            "sasl.mechanism": kafka.security.mechanism,
            "sasl.username": user,
            "sasl.password": _password(kafka, user),
        }
    return settings | ({"ssl.ca.location": kafka.security.ca} if kafka.security.ca else {})


def spark_source(kafka: Kafka, user: str) -> dict[str, str]:
    """Options of Spark's Kafka source."""
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "kafka.security.protocol": kafka.security.protocol,
    }
    if kafka.security.mechanism:
        options |= {
            "kafka.sasl.mechanism": kafka.security.mechanism,
            "kafka.sasl.jaas.config": _JAAS.format(user, _password(kafka, user)),
        }
    if kafka.security.ca:
        options |= {
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": kafka.security.ca,
        }
    return options


def _password(kafka: Kafka, user: str) -> str:
    place = kafka.security.secrets.get(user)
    if place is None:
        known = ", ".join(sorted(kafka.security.secrets)) or "none"
        raise EnvironmentFailedError(f"Kafka has no user {user!r}. Its users: {known}.")
    if kafka.security.mechanism != "SCRAM-SHA-512":
        raise EnvironmentFailedError(
            f"Logging in by {kafka.security.mechanism} is not known here. Use SCRAM-SHA-512."
        )
    try:
        return Path(place).read_text("utf-8").strip()
    except OSError as error:
        raise EnvironmentFailedError(
            f"The password of {user} is not in a file {place} ({error.strerror}). Where it is a managed secret, "
            "put its value into a file that only you may read, and name that one."
        ) from error
