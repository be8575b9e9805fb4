"""A broker in a container: the same code as everywhere, told who else is there by its command line."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

from penstock.infra.broker import BrokerConfig, QuorumVoter, broker_command, format_storage
from penstock.infra.container.errors import ContainerError
from penstock.infra.jars import ensure_jars

HEAP_MB = 1024


def prepare_container_broker(
    address: str, node_id: int, voters: str, cluster_id: str, data: Path, jars: Path, heap_mb: int = HEAP_MB
) -> list[str]:
    """Prepare the broker's folder and return the command that it is."""
    quorum = parse_voters(voters, cluster_id)
    own_voters = [voter for voter in quorum if voter.node_id == node_id]
    if not own_voters:
        raise ContainerError(
            f"Node {node_id} is not among the voters {voters}. Name it there, as {node_id}@host:port."
        )
    host, port = _parse_address(address)
    config = BrokerConfig(
        directory=data,
        port=port,
        controller_port=own_voters[0].port,
        host=host,
        node_id=node_id,
        cluster_id=cluster_id,
        voters=quorum,
        heap_mb=heap_mb,
    )
    jar_paths = ensure_jars(jars, ["kafka"])
    format_storage(config, jar_paths)
    return broker_command(config, jar_paths)


def parse_voters(text: str, cluster_id: str) -> tuple[QuorumVoter, ...]:
    """Read `1@host:port,2@host:port,…`. Each node's folder gets an id that all nodes can work out."""
    voters = []
    for part in text.split(","):
        node_id, _, address = part.partition("@")
        if not node_id.isdigit():
            raise ContainerError(f"{part!r} is no voter. Write number@host:port, with commas between.")
        host, port = _parse_address(address)
        voters.append(QuorumVoter(int(node_id), host, port, _directory_id(cluster_id, int(node_id))))
    return tuple(voters)


def _directory_id(cluster_id: str, node_id: int) -> str:
    directory_uuid = uuid.uuid5(uuid.NAMESPACE_OID, f"{cluster_id}/{node_id}")
    return base64.urlsafe_b64encode(directory_uuid.bytes).rstrip(b"=").decode()


def _parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ContainerError(f"{text!r} is no address. Write host:port.")
    return host, int(port)
