"""The configuration of a local Kafka cluster, without starting it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.infra.broker import server_properties
from penstock.infra.local.errors import LocalEnvironmentError
from penstock.infra.local.kafka_cluster import create_cluster, load_cluster

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def test_a_cluster_is_created_once(tmp_path: Path) -> None:
    first = create_cluster(tmp_path / "kafka", 21000, False, NOON)
    assert create_cluster(tmp_path / "kafka", 21000, False, NOON) == first
    assert len({first.cluster_id, *first.directory_ids}) == 4


def test_the_first_three_nodes_are_brokers_and_controllers(tmp_path: Path) -> None:
    cluster = create_cluster(tmp_path, 21000, False, NOON)
    properties = [server_properties(cluster.node_config(node, 256)) for node in (1, 2, 3)]
    assert {node_properties["process.roles"] for node_properties in properties} == {"broker,controller"}
    assert {node_properties["controller.quorum.bootstrap.servers"] for node_properties in properties} == {
        "127.0.0.1:21011,127.0.0.1:21012,127.0.0.1:21013"
    }
    assert {
        (node_properties["default.replication.factor"], node_properties["min.insync.replicas"])
        for node_properties in properties
    } == {("3", "2")}


def test_a_fourth_node_is_a_broker_only(tmp_path: Path) -> None:
    properties = server_properties(create_cluster(tmp_path, 21000, False, NOON).node_config(4, 256))
    assert properties["process.roles"] == "broker"
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:21004"


def test_the_bootstrap_address_lists_every_broker(tmp_path: Path) -> None:
    assert create_cluster(tmp_path, 21000, False, NOON).bootstrap(4).split(",")[-1] == "127.0.0.1:21004"


def test_a_missing_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LocalEnvironmentError, match="No cluster was formed"):
        load_cluster(tmp_path / "none", 21000)
