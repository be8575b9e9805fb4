"""What a cluster's nodes are told, decided without starting one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.infra.broker import server_properties
from penstock.infra.local.errors import LocalEnvironmentError
from penstock.infra.local.kafka_cluster import create_cluster, load_cluster

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def test_a_cluster_is_formed_once(tmp_path: Path) -> None:
    first = create_cluster(tmp_path / "kafka", 21000, False, NOON)
    assert create_cluster(tmp_path / "kafka", 21000, False, NOON) == first
    assert len({first.cluster_id, *first.directory_ids}) == 4


def test_three_nodes_vote_and_hold_topics(tmp_path: Path) -> None:
    cluster = create_cluster(tmp_path, 21000, False, NOON)
    told = [server_properties(cluster.node_config(node, 256)) for node in (1, 2, 3)]
    assert {one["process.roles"] for one in told} == {"broker,controller"}
    assert {one["controller.quorum.bootstrap.servers"] for one in told} == {
        "127.0.0.1:21011,127.0.0.1:21012,127.0.0.1:21013"
    }
    assert {(one["default.replication.factor"], one["min.insync.replicas"]) for one in told} == {("3", "2")}


def test_a_fourth_node_only_holds_topics(tmp_path: Path) -> None:
    told = server_properties(create_cluster(tmp_path, 21000, False, NOON).node_config(4, 256))
    assert told["process.roles"] == "broker"
    assert told["listeners"] == "PLAINTEXT://127.0.0.1:21004"


def test_clients_are_given_every_broker(tmp_path: Path) -> None:
    assert create_cluster(tmp_path, 21000, False, NOON).bootstrap(4).split(",")[-1] == "127.0.0.1:21004"


def test_a_cluster_that_was_never_formed_is_named(tmp_path: Path) -> None:
    with pytest.raises(LocalEnvironmentError, match="No cluster was formed"):
        load_cluster(tmp_path / "none", 21000)
