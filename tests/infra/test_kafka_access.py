"""How clients log in, from where a cluster is and a password's place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.core.errors import SecretError
from penstock.core.secret import read_secret
from penstock.infra.kafka_access import KafkaAccess, kafka_client_config, spark_kafka_options

OPEN = KafkaAccess("127.0.0.1:1,127.0.0.1:2")


@pytest.fixture
def secured(tmp_path: Path) -> KafkaAccess:
    (tmp_path / "host").write_text("a password\n")
    secrets = {"host": str(tmp_path / "host"), "topics": str(tmp_path / "gone"), "nobody": ""}
    return KafkaAccess("127.0.0.1:1", "SASL_SSL", "SCRAM-SHA-512", "/ca.pem", secrets)


def test_an_open_cluster_needs_its_address_alone() -> None:
    assert kafka_client_config(OPEN, "host") == {
        "bootstrap.servers": "127.0.0.1:1,127.0.0.1:2",
        "security.protocol": "PLAINTEXT",
    }
    assert spark_kafka_options(OPEN, "host") == {
        "kafka.bootstrap.servers": "127.0.0.1:1,127.0.0.1:2",
        "kafka.security.protocol": "PLAINTEXT",
    }


def test_a_secured_one_needs_a_name_a_password_and_whom_to_trust(secured: KafkaAccess) -> None:
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


def test_a_password_cannot_end_the_line_that_it_stands_in(secured: KafkaAccess, tmp_path: Path) -> None:
    (tmp_path / "host").write_text('a "quoted\\ one"; more')
    line = spark_kafka_options(secured, "host")["kafka.sasl.jaas.config"]
    assert line.endswith(r'password="a \"quoted\\ one\"; more";')


def test_a_user_that_is_none_is_told_who_is(secured: KafkaAccess) -> None:
    with pytest.raises(SecretError, match=r"user 'ann'\. Known users: host, topics"):
        kafka_client_config(secured, "ann")
    with pytest.raises(SecretError, match="user 'nobody'"):
        kafka_client_config(secured, "nobody")


def test_a_password_that_is_not_there_is_named(secured: KafkaAccess) -> None:
    with pytest.raises(SecretError, match="The password of Kafka's user topics is not in a file"):
        kafka_client_config(secured, "topics")


def test_a_way_of_logging_in_that_we_do_not_know_is_refused(secured: KafkaAccess) -> None:
    with pytest.raises(SecretError, match="AWS_MSK_IAM is not supported"):
        kafka_client_config(replace(secured, mechanism="AWS_MSK_IAM"), "host")


def test_a_secret_may_be_in_a_variable_or_in_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ITS_NAME", "it\n")
    assert read_secret("env:ITS_NAME", "It") == "it"
    (tmp_path / "managed").write_text('{"username": "host", "password": "managed"}')
    assert read_secret(str(tmp_path / "managed"), "It") == "managed"


@pytest.mark.parametrize("content", ['{"passwort": "canary"}', '{"canary', '{"a": ["canary"]}'])
def test_what_is_no_secret_is_refused_without_being_shown(content: str, tmp_path: Path) -> None:
    (tmp_path / "it").write_text(content)
    with pytest.raises(SecretError, match="JSON without a password") as raised:
        read_secret(str(tmp_path / "it"), "It")
    assert "canary" not in f"{raised.value}{raised.value.__cause__}"


def test_a_place_that_holds_nothing_is_told(tmp_path: Path) -> None:
    (tmp_path / "it").write_text("\n")
    with pytest.raises(SecretError, match="is empty"):
        read_secret(str(tmp_path / "it"), "It")
    with pytest.raises(SecretError, match="not in a variable NO_SUCH"):
        read_secret("env:NO_SUCH", "It")
