"""A Kafka cluster on this machine: who is in it, on which ports, with which settings.

The first three nodes vote on metadata and keep it; further ones only hold topics. A cluster is formed
once: what is decided then (ids) is in a file beside its data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.broker import BrokerConfig, Controller, new_id
from penstock.infra.files import write_whole
from penstock.infra.local.errors import LocalEnvironmentError
from penstock.infra.ports import LOCALHOST

VOTERS = 3
MOST_BROKERS = 9
_CONTROLLERS_FROM = 10


@dataclass(frozen=True)
class Cluster:
    """A formed cluster: its folder, its first port and its ids."""

    directory: Path
    first_port: int
    cluster_id: str
    directory_ids: tuple[str, ...]

    @property
    def voters(self) -> tuple[Controller, ...]:
        """The nodes that vote on metadata."""
        return tuple(
            Controller(node, LOCALHOST, self._controller_port(node), self.directory_ids[node - 1])
            for node in range(1, VOTERS + 1)
        )

    def port(self, node: int) -> int:
        """Where clients reach a node."""
        return self.first_port + node

    def bootstrap(self, brokers: int) -> str:
        """What a client is given to find the cluster of so many brokers."""
        return ",".join(f"{LOCALHOST}:{self.port(node)}" for node in range(1, brokers + 1))

    def node(self, node: int, heap_mb: int) -> BrokerConfig:
        """Decide how one node runs."""
        return BrokerConfig(
            directory=self.directory / f"broker-{node}",
            port=self.port(node),
            controller_port=self._controller_port(node),
            node_id=node,
            cluster_id=self.cluster_id,
            cluster=self.voters,
            heap_mb=heap_mb,
            properties=() if node <= VOTERS else self._only_a_broker(node),
        )

    def _only_a_broker(self, node: int) -> tuple[tuple[str, str], ...]:
        return (
            ("process.roles", "broker"),
            ("listeners", f"PLAINTEXT://{LOCALHOST}:{self.port(node)}"),
        )

    def _controller_port(self, node: int) -> int:
        return self.first_port + _CONTROLLERS_FROM + node


def form(directory: Path, first_port: int) -> Cluster:
    """Decide a cluster's ids and write them down; a cluster that was formed before stays as it is."""
    path = _file(directory)
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        ids = {"cluster_id": new_id(), "directory_ids": [new_id() for _ in range(VOTERS)]}
        write_whole(path, json.dumps(ids))
    return formed(directory, first_port)


def formed(directory: Path, first_port: int) -> Cluster:
    """Read the cluster that was formed in this folder."""
    path = _file(directory)
    if not path.exists():
        raise LocalEnvironmentError(
            f"No cluster was formed in {directory}. Apply the whole environment again."
        )
    ids = json.loads(path.read_text("utf-8"))
    return Cluster(directory, first_port, ids["cluster_id"], tuple(ids["directory_ids"]))


def _file(directory: Path) -> Path:
    return directory / "cluster.json"
