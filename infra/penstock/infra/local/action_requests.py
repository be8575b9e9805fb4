"""What Terraform hands over to a local program's action: one JSON document, read strictly."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypeVar

import msgspec

from penstock.infra.local.errors import ActionRequestError


class ComponentRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the environment: its folder, its first port, the folder of jars, whether it is secured."""

    directory: str
    first_port: int
    jars: str
    secured: bool = False

    @property
    def path(self) -> Path:
        """The part's folder."""
        return Path(self.directory)


class ClusterRequest(ComponentRequest, frozen=True, forbid_unknown_fields=True):
    """A Kafka cluster."""


class BrokerRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One broker of a cluster, and how it is to run. `brokers` is how many there are to be."""

    cluster: ClusterRequest
    node: int
    brokers: int
    heap_mb: int
    token: str


class UsersRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The users of a secured cluster of so many brokers."""

    cluster: ClusterRequest
    brokers: int


class SparkClusterRequest(ComponentRequest, frozen=True, forbid_unknown_fields=True):
    """A standalone Spark."""


class MasterRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Spark's master."""

    spark: SparkClusterRequest
    token: str


class WorkerRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One worker, and what it may use."""

    spark: SparkClusterRequest
    number: int
    cores: int
    memory_mb: int
    token: str


class ProgramRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program that is to end, and a folder of its own that goes with it."""

    directory: str
    name: str
    remove: str = ""


class FolderRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder to make, or to remove with all that is in it."""

    directory: str


RequestT = TypeVar("RequestT", bound=msgspec.Struct)


def parse_request(text: str, request_type: type[RequestT]) -> RequestT:
    """Read a document of this form; ActionRequestError says what is wrong with it."""
    try:
        return msgspec.json.decode(text.encode(), type=request_type)
    except msgspec.MsgspecError as error:
        described = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", request_type.__name__).lower()
        raise ActionRequestError(
            f"PENSTOCK_ORDER is no {described}: {error}. It was: {text[:200]}"
        ) from error
