"""Client configurations for open and secured clusters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.core.errors import SecretError
from penstock.infra.kafka_access import KafkaAccess, kafka_client_config, spark_kafka_options

OPEN = KafkaAccess("127.0.0.1:1,127.0.0.1:2")


@pytest.fixture
def secured(tmp_path: Path) -> KafkaAccess:
    (tmp_path / "host").write_text("a password\n")
    secrets = {"host": str(tmp_path / "host"), "topics": str(tmp_path / "gone"), "nobody": ""}
    return KafkaAccess("127.0.0.1:1", "SASL_SSL", "SCRAM-SHA-512", "/ca.pem", secrets)


def test_an_open_cluster_needs_only_its_address() -> None:
    assert kafka_client_config(OPEN, "host") == {
        "bootstrap.servers": "127.0.0.1:1,127.0.0.1:2",
        "security.protocol": "PLAINTEXT",
    }
    assert spark_kafka_options(OPEN, "host") == {
        "kafka.bootstrap.servers": "127.0.0.1:1,127.0.0.1:2",
        "kafka.security.protocol": "PLAINTEXT",
    }


def test_a_secured_cluster_needs_user_password_and_certificate(secured: KafkaAccess) -> None:
    assert kafka_client_config(secured, "host") == {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "host",
        "sasl.password": "a password",
        "ssl.ca.location": "/ca.pem",
    }
    options = spark_kafka_options(secured, "host")
    assert options["kafka.sasl.jaas.config"].endswith('required username="host" password="a password";')
    assert options["kafka.ssl.truststore.location"] == "/ca.pem"


def test_a_password_is_quoted_in_the_jaas_configuration(secured: KafkaAccess, tmp_path: Path) -> None:
    (tmp_path / "host").write_text('a "quoted\\ one"; more')
    line = spark_kafka_options(secured, "host")["kafka.sasl.jaas.config"]
    assert line.endswith(r'password="a \"quoted\\ one\"; more";')


def test_an_unknown_user_is_refused_with_the_known_ones(secured: KafkaAccess) -> None:
    with pytest.raises(SecretError, match=r"user 'ann'\. Known users: host, topics"):
        kafka_client_config(secured, "ann")
    with pytest.raises(SecretError, match="user 'nobody'"):
        kafka_client_config(secured, "nobody")


def test_a_missing_password_file_is_named(secured: KafkaAccess) -> None:
    with pytest.raises(SecretError, match="The password of Kafka's user topics is not in a file"):
        kafka_client_config(secured, "topics")


def test_an_unsupported_mechanism_is_refused(secured: KafkaAccess) -> None:
    with pytest.raises(SecretError, match="AWS_MSK_IAM is not supported"):
        kafka_client_config(replace(secured, mechanism="AWS_MSK_IAM"), "host")
