"""A Kafka cluster on this machine: its nodes, ports and settings.

The first three nodes vote on metadata and keep it; further ones only hold topics. A cluster is formed
once: what is decided then (ids) is in a file beside its data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from penstock.core.files import write_atomically
from penstock.infra.broker import BrokerConfig, QuorumVoter, new_kafka_id
from penstock.infra.local.certificates import BROKER_COMMON_NAME, make_certificates
from penstock.infra.local.errors import LocalEnvironmentError
from penstock.infra.ports import LOCALHOST

VOTER_COUNT = 3
_CONTROLLER_PORT_OFFSET = 10
_INTERNAL_PORT_OFFSET = 20


@dataclass(frozen=True)
class LocalKafkaCluster:
    """A formed cluster: folder, first port and ids."""

    directory: Path
    first_port: int
    cluster_id: str
    directory_ids: tuple[str, ...]
    is_secured: bool = False

    @property
    def voters(self) -> tuple[QuorumVoter, ...]:
        """The nodes that vote on metadata."""
        return tuple(
            QuorumVoter(node, LOCALHOST, self._controller_port(node), self.directory_ids[node - 1])
            for node in range(1, VOTER_COUNT + 1)
        )

    def port(self, node_id: int) -> int:
        """Return the address of a node for clients."""
        return self.first_port + node_id

    def bootstrap(self, brokers: int) -> str:
        """Return the bootstrap servers of a cluster with this number of brokers."""
        return ",".join(f"{LOCALHOST}:{self.port(node)}" for node in range(1, brokers + 1))

    def node_config(self, node_id: int, heap_mb: int) -> BrokerConfig:
        """Return the configuration of one node."""
        return BrokerConfig(
            directory=self.directory / f"broker-{node_id}",
            port=self.port(node_id),
            controller_port=self._controller_port(node_id),
            node_id=node_id,
            cluster_id=self.cluster_id,
            voters=self.voters,
            heap_mb=heap_mb,
            properties=tuple(self._properties(node_id).items()),
        )

    def admin_config(self, brokers: int) -> dict[str, str | int | float | bool]:
        """Return the settings of internal clients; on a secured cluster they use a broker's certificate."""
        # Without the log level, librdkafka writes each refused connection to stderr.
        if not self.is_secured:
            return {"bootstrap.servers": self.bootstrap(brokers), "log_level": 0}
        nodes = range(1, brokers + 1)
        return {
            "bootstrap.servers": ",".join(f"{LOCALHOST}:{self._internal_port(node)}" for node in nodes),
            "security.protocol": "ssl",
            "ssl.ca.location": str(self.certificate_directory / "ca.pem"),
            "ssl.certificate.location": str(self.certificate_directory / "broker.crt"),
            "ssl.key.location": str(self.certificate_directory / "broker.key"),
            "log_level": 0,
        }

    @property
    def certificate_directory(self) -> Path:
        """Folder of the certificates of a secured cluster."""
        return self.directory / "certificates"

    def _properties(self, node_id: int) -> dict[str, str]:
        is_voter = node_id <= VOTER_COUNT
        listeners = self._listeners(node_id)
        properties = {} if is_voter else {"process.roles": "broker", "listeners": ",".join(listeners)}
        if not self.is_secured:
            return properties
        controller_listeners = (
            [f"CONTROLLER://{LOCALHOST}:{self._controller_port(node_id)}"] if is_voter else []
        )
        return {
            **properties,
            **security_properties(self.certificate_directory),
            "listeners": ",".join([*listeners, *controller_listeners]),
            "advertised.listeners": ",".join(listeners),
        }

    def _listeners(self, node_id: int) -> list[str]:
        if not self.is_secured:
            return [f"PLAINTEXT://{LOCALHOST}:{self.port(node_id)}"]
        return [
            f"SASL_SSL://{LOCALHOST}:{self.port(node_id)}",
            f"INTERNAL://{LOCALHOST}:{self._internal_port(node_id)}",
        ]

    def _internal_port(self, node_id: int) -> int:
        return self.first_port + _INTERNAL_PORT_OFFSET + node_id

    def _controller_port(self, node_id: int) -> int:
        return self.first_port + _CONTROLLER_PORT_OFFSET + node_id


def security_properties(certificates: Path) -> dict[str, str]:
    """Return the security properties of a node: SCRAM over TLS for clients, certificates between nodes.

    They contain no secret: keys are files that only their owner can read.
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
        "super.users": f"User:CN={BROKER_COMMON_NAME}",
    }


def create_cluster(directory: Path, first_port: int, is_secured: bool, now: datetime) -> LocalKafkaCluster:
    """Create the ids of a cluster and write them; an existing cluster is not changed."""
    path = _cluster_file(directory)
    if not path.exists():
        directory.mkdir(parents=True, exist_ok=True)
        if is_secured:
            make_certificates(directory / "certificates", now)
        ids = {
            "cluster_id": new_kafka_id(),
            "directory_ids": [new_kafka_id() for _ in range(VOTER_COUNT)],
            "secured": is_secured,
        }
        write_atomically(path, json.dumps(ids))
    return load_cluster(directory, first_port)


def load_cluster(directory: Path, first_port: int) -> LocalKafkaCluster:
    """Read the cluster in this folder."""
    path = _cluster_file(directory)
    if not path.exists():
        raise LocalEnvironmentError(
            f"No cluster was formed in {directory}. Apply the whole environment again."
        )
    ids = json.loads(path.read_text("utf-8"))
    return LocalKafkaCluster(
        directory, first_port, ids["cluster_id"], tuple(ids["directory_ids"]), ids["secured"]
    )


def _cluster_file(directory: Path) -> Path:
    return directory / "cluster.json"
