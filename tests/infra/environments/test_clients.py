"""How clients log in, from the typed outputs and a password's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.infra.environments import EnvironmentFailedError, Kafka, Security
from penstock.infra.environments.clients import kafka_client, spark_source

OPEN = Kafka(("127.0.0.1:1", "127.0.0.1:2"), Security("PLAINTEXT", "", "", {}))


@pytest.fixture
def secured(tmp_path: Path) -> Kafka:
    (tmp_path / "host").write_text("a password\n")
    secrets = {"host": str(tmp_path / "host"), "topics": str(tmp_path / "gone")}
    return Kafka(("127.0.0.1:1",), Security("SASL_SSL", "SCRAM-SHA-512", "/ca.pem", secrets))


def test_an_open_cluster_needs_its_address_alone() -> None:
    assert kafka_client(OPEN, "host") == {
        "bootstrap.servers": "127.0.0.1:1,127.0.0.1:2",
        "security.protocol": "PLAINTEXT",
    }
    assert spark_source(OPEN, "host") == {
        "kafka.bootstrap.servers": "127.0.0.1:1,127.0.0.1:2",
        "kafka.security.protocol": "PLAINTEXT",
    }


def test_a_secured_one_needs_a_name_a_password_and_whom_to_trust(secured: Kafka) -> None:
    assert kafka_client(secured, "host") == {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "host",
        "sasl.password": "a password",
        "ssl.ca.location": "/ca.pem",
    }
    options = spark_source(secured, "host")
    assert options["kafka.sasl.jaas.config"].endswith('required username="host" password="a password";')
    assert options["kafka.ssl.truststore.location"] == "/ca.pem"


def test_a_user_that_is_none_is_told_who_is(secured: Kafka) -> None:
    with pytest.raises(EnvironmentFailedError, match="Its users: host, topics"):
        kafka_client(secured, "ann")


def test_a_password_that_is_not_there_is_named(secured: Kafka) -> None:
    with pytest.raises(EnvironmentFailedError, match="The password of topics is not in a file"):
        kafka_client(secured, "topics")


def test_a_way_of_logging_in_that_we_do_not_know_is_refused() -> None:
    iam = Kafka(("b:9098",), Security("SASL_SSL", "AWS_MSK_IAM", "", {"host": "arn"}))
    with pytest.raises(EnvironmentFailedError, match="AWS_MSK_IAM is not known here"):
        kafka_client(iam, "host")
