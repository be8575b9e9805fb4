"""A broker in a container: the same code as everywhere, told who else is there by its command line."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

from penstock.infra.broker import BrokerConfig, Controller, broker_command, format_storage
from penstock.infra.container.errors import ContainerError
from penstock.infra.jars import ensure_jars

HEAP_MB = 1024


def broker_in_container(
    address: str, node: int, voters: str, cluster: str, data: Path, jars: Path, heap_mb: int = HEAP_MB
) -> list[str]:
    """Prepare the broker's folder and return the command that it is."""
    quorum = read_voters(voters, cluster)
    own = [voter for voter in quorum if voter.node_id == node]
    if not own:
        raise ContainerError(
            f"Node {node} is not among the voters {voters}. Name it there, as {node}@host:port."
        )
    host, port = _address(address)
    config = BrokerConfig(
        directory=data,
        port=port,
        controller_port=own[0].port,
        host=host,
        node_id=node,
        cluster_id=cluster,
        cluster=quorum,
        heap_mb=heap_mb,
    )
    found = ensure_jars(jars, ["kafka"])
    format_storage(config, found)
    return broker_command(config, found)


def read_voters(text: str, cluster: str) -> tuple[Controller, ...]:
    """Read `1@host:port,2@host:port,…`. Each node's folder gets an id that all nodes can work out."""
    found = []
    for part in text.split(","):
        number, _, address = part.partition("@")
        if not number.isdigit():
            raise ContainerError(f"{part!r} is no voter. Write number@host:port, with commas between.")
        host, port = _address(address)
        found.append(Controller(int(number), host, port, _folder_id(cluster, int(number))))
    return tuple(found)


def _folder_id(cluster: str, node: int) -> str:
    made = uuid.uuid5(uuid.NAMESPACE_OID, f"{cluster}/{node}")
    return base64.urlsafe_b64encode(made.bytes).rstrip(b"=").decode()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise ContainerError(f"{text!r} is no address. Write host:port.")
    return host, int(port)
