"""Requests of Terraform to the local programs: one JSON document, strictly validated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

import msgspec

from penstock.infra.local.errors import ActionRequestError


class ComponentRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the environment: folder, first port, jar folder, whether it is secured."""

    directory: str
    first_port: int
    jars: str
    secured: bool = False

    @property
    def path(self) -> Path:
        """Folder of the part."""
        return Path(self.directory)


class ClusterRequest(ComponentRequest, frozen=True, forbid_unknown_fields=True):
    """A Kafka cluster."""


class BrokerRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One broker of a cluster with its settings; `brokers` is the number of brokers."""

    cluster: ClusterRequest
    node: int
    brokers: int
    heap_mb: int
    token: str


class UsersRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The users of a secured cluster."""

    cluster: ClusterRequest
    brokers: int


class SparkClusterRequest(ComponentRequest, frozen=True, forbid_unknown_fields=True):
    """A standalone Spark cluster."""


class MasterRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The Spark master."""

    spark: SparkClusterRequest
    token: str


class WorkerRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A Spark worker and its resources."""

    spark: SparkClusterRequest
    number: int
    cores: int
    memory_mb: int
    token: str


class ProgramRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program to stop, and its folder to remove."""

    directory: str
    name: str
    remove: str = ""


class FolderRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder to create, or to remove with its content."""

    directory: str


RequestT = TypeVar("RequestT", bound=msgspec.Struct)


def parse_request(text: str, request_type: type[RequestT]) -> RequestT:
    """Parse a document; raise ActionRequestError with the problem if it is invalid."""
    try:
        return msgspec.json.decode(text.encode(), type=request_type)
    except msgspec.MsgspecError as error:
        described = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", request_type.__name__).lower()
        raise ActionRequestError(
            f"PENSTOCK_ORDER is no {described}: {error}. It was: {text[:200]}"
        ) from error
