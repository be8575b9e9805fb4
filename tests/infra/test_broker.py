"""The configuration of Kafka nodes, and waiting for a broker."""

import uuid
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.infra.broker import (
    BrokerConfig,
    QuorumVoter,
    new_kafka_id,
    server_properties,
)


def _single_node(tmp_path: Path) -> BrokerConfig:
    return BrokerConfig(tmp_path, port=9092, controller_port=9093)


def test_a_node_listens_on_the_loopback_address_only(tmp_path: Path) -> None:
    properties = server_properties(_single_node(tmp_path))
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"


def test_the_replication_factor_follows_the_number_of_nodes(tmp_path: Path) -> None:
    voters = tuple(QuorumVoter(number, "127.0.0.1", 9000 + number, new_kafka_id()) for number in (1, 2, 3))
    single = server_properties(_single_node(tmp_path))
    three = server_properties(replace(_single_node(tmp_path), voters=voters))
    assert (single["default.replication.factor"], single["min.insync.replicas"]) == ("1", "1")
    assert (three["default.replication.factor"], three["min.insync.replicas"]) == ("3", "2")
    assert three["controller.quorum.bootstrap.servers"].count(",") == 2


def test_a_kafka_id_never_starts_with_a_dash(monkeypatch: pytest.MonkeyPatch) -> None:
    uuids = iter([uuid.UUID(int=0xF8 << 120), uuid.UUID(int=1)])
    monkeypatch.setattr("penstock.infra.broker.uuid.uuid4", lambda: next(uuids))
    assert new_kafka_id() == "AAAAAAAAAAAAAAAAAAAAAQ"


def test_given_properties_override_the_defaults(tmp_path: Path) -> None:
    config = replace(_single_node(tmp_path), properties=(("num.io.threads", "1"),))
    assert server_properties(config)["num.io.threads"] == "1"
