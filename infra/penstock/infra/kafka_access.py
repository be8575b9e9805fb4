"""Client settings for a Kafka cluster, for librdkafka and for Spark's JVM.

Passwords are read when a client is created, and are part of the returned settings: pass them to the client, and
never print them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.core.errors import SecretError
from penstock.core.kafka_client import BrokerAccess
from penstock.core.secret import Secret, read_secret

LOGIN_MODULES = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}
"""SASL mechanisms, with the JVM class of each."""


@dataclass(frozen=True)
class KafkaAccess:
    """Address and security of a cluster. `secrets` has the secret references of passwords, not their values."""

    bootstrap: str
    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    ca_file: str = ""
    """File of trusted CA certificates; empty for those of the system."""
    secret_references: Mapping[str, str] = field(default_factory=dict)


def broker_access(access: KafkaAccess, user: str) -> BrokerAccess:
    """Return the address of the brokers with the options of both kinds of clients."""
    return BrokerAccess(
        access.bootstrap, kafka_client_config(access, user), spark_kafka_options(access, user)
    )


def kafka_client_config(access: KafkaAccess, user: str) -> dict[str, str]:
    """Return the settings of a librdkafka client."""
    settings = {"bootstrap.servers": access.bootstrap, "security.protocol": access.protocol}
    if access.mechanism:
        settings |= {
            "sasl.mechanism": access.mechanism,
            "sasl.username": user,
            "sasl.password": _read_password(access, user).reveal(),
        }
    return settings | ({"ssl.ca.location": access.ca_file} if access.ca_file else {})


def spark_kafka_options(access: KafkaAccess, user: str) -> dict[str, str]:
    """Return the options of Spark's Kafka source."""
    options = {
        "kafka.bootstrap.servers": access.bootstrap,
        "kafka.security.protocol": access.protocol,
    }
    if access.mechanism:
        password = _read_password(access, user).reveal()
        options |= {
            "kafka.sasl.mechanism": access.mechanism,
            "kafka.sasl.jaas.config": (
                f"{LOGIN_MODULES[access.mechanism]} required "
                f"username={_quote_jaas(user)} password={_quote_jaas(password)};"
            ),
        }
    if access.ca_file:
        options |= {
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": access.ca_file,
        }
    return options


def _quote_jaas(text: str) -> str:
    """Quote a value for a JAAS configuration."""
    return '"{}"'.format(text.replace("\\", "\\\\").replace('"', '\\"'))


def _read_password(access: KafkaAccess, user: str) -> Secret:
    if access.mechanism not in LOGIN_MODULES:
        choices = ", ".join(sorted(LOGIN_MODULES))
        raise SecretError(f"SASL mechanism {access.mechanism} is not supported. Use one of {choices}.")
    reference = access.secret_references.get(user)
    if not reference:
        choices = (
            ", ".join(
                sorted(name for name, user_reference in access.secret_references.items() if user_reference)
            )
            or "none"
        )
        raise SecretError(
            f"There is no secret reference for the password of Kafka user {user!r}. Known users: {choices}."
        )
    return read_secret(reference, f"The password of Kafka's user {user}")
