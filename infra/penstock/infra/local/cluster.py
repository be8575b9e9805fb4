"""A Kafka cluster on this machine: who is in it, on which ports, with which settings.

The first three nodes vote on metadata and keep it; further ones only hold topics. A cluster is formed
once: what is decided then (ids) is in a file beside its data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from penstock.infra.broker import BrokerConfig, Controller, new_id
from penstock.infra.files import write_whole
from penstock.infra.local.certificates import BROKER, make_certificates
from penstock.infra.local.errors import LocalEnvironmentError
from penstock.infra.ports import LOCALHOST

VOTERS = 3
MOST_BROKERS = 9
_CONTROLLERS_FROM = 10
_INTERNAL_FROM = 20


@dataclass(frozen=True)
class Cluster:
    """A formed cluster: its folder, its first port and its ids."""

    directory: Path
    first_port: int
    cluster_id: str
    directory_ids: tuple[str, ...]
    secured: bool = False

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
            properties=tuple(self._properties(node).items()),
        )

    def admin_settings(self, brokers: int) -> dict[str, str | int | float | bool]:
        """How our own clients reach the brokers: on a secured cluster as a broker does, by its certificate."""
        # Without the log level, librdkafka writes each refused connection to stderr.
        if not self.secured:
            return {"bootstrap.servers": self.bootstrap(brokers), "log_level": 0}
        nodes = range(1, brokers + 1)
        return {
            "bootstrap.servers": ",".join(f"{LOCALHOST}:{self._internal_port(node)}" for node in nodes),
            "security.protocol": "ssl",
            "ssl.ca.location": str(self.certificates / "ca.pem"),
            "ssl.certificate.location": str(self.certificates / "broker.crt"),
            "ssl.key.location": str(self.certificates / "broker.key"),
            "log_level": 0,
        }

    @property
    def certificates(self) -> Path:
        """Where a secured cluster's certificates are."""
        return self.directory / "certificates"

    def _properties(self, node: int) -> dict[str, str]:
        votes = node <= VOTERS
        listeners = self._listeners(node)
        told = {} if votes else {"process.roles": "broker", "listeners": ",".join(listeners)}
        if not self.secured:
            return told
        controller = [f"CONTROLLER://{LOCALHOST}:{self._controller_port(node)}"] if votes else []
        return {
            **told,
            **secured_properties(self.certificates),
            "listeners": ",".join([*listeners, *controller]),
            "advertised.listeners": ",".join(listeners),
        }

    def _listeners(self, node: int) -> list[str]:
        if not self.secured:
            return [f"PLAINTEXT://{LOCALHOST}:{self.port(node)}"]
        return [
            f"SASL_SSL://{LOCALHOST}:{self.port(node)}",
            f"INTERNAL://{LOCALHOST}:{self._internal_port(node)}",
        ]

    def _internal_port(self, node: int) -> int:
        return self.first_port + _INTERNAL_FROM + node

    def _controller_port(self, node: int) -> int:
        return self.first_port + _CONTROLLERS_FROM + node


def secured_properties(certificates: Path) -> dict[str, str]:
    """How a node is secured: clients by SCRAM over TLS, nodes among themselves by certificate, nobody else.

    No secret is among them: keys are files that only their owner may read.
    """
    return {
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,INTERNAL:SSL,CONTROLLER:SSL",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates / "broker.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates / "ca.pem"),
        "listener.name.internal.ssl.client.auth": "required",
        "listener.name.controller.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "false",
        "super.users": f"User:CN={BROKER}",
    }


def form(directory: Path, first_port: int, secured: bool, now: datetime) -> Cluster:
    """Decide a cluster's ids and write them down; a cluster that was formed before stays as it is."""
    path = _file(directory)
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        if secured:
            make_certificates(directory / "certificates", now)
        ids = {"cluster_id": new_id(), "directory_ids": [new_id() for _ in range(VOTERS)], "secured": secured}
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
    return Cluster(directory, first_port, ids["cluster_id"], tuple(ids["directory_ids"]), ids["secured"])


def _file(directory: Path) -> Path:
    return directory / "cluster.json"
