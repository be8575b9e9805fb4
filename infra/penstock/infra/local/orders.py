"""What Terraform hands over to a local program's action: one JSON document, read strictly."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from penstock.infra.local.errors import OrderError


class PartOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the environment: its folder, its first port, the folder of jars, whether it is secured."""

    directory: str
    first_port: int
    jars: str
    secured: bool = False

    @property
    def path(self) -> Path:
        """The part's folder."""
        return Path(self.directory)


class ClusterOrder(PartOrder, frozen=True, forbid_unknown_fields=True):
    """A Kafka cluster."""


class BrokerOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One broker of a cluster, and how it is to run. `brokers` is how many there are to be."""

    cluster: ClusterOrder
    node: int
    brokers: int
    heap_mb: int
    token: str


class UsersOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The users of a secured cluster of so many brokers."""

    cluster: ClusterOrder
    brokers: int


class SparkOrder(PartOrder, frozen=True, forbid_unknown_fields=True):
    """A standalone Spark."""


class MasterOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Spark's master."""

    spark: SparkOrder
    token: str


class WorkerOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One worker, and what it may use."""

    spark: SparkOrder
    number: int
    cores: int
    memory_mb: int
    token: str


class ProgramOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A program that is to end, and a folder of its own that goes with it."""

    directory: str
    name: str
    remove: str = ""


class FolderOrder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A folder to make, or to remove with all that is in it."""

    directory: str


Order = TypeVar("Order", bound=msgspec.Struct)


def read_order(text: str, form: type[Order]) -> Order:
    """Read a document of this form; OrderError says what is wrong with it."""
    try:
        return msgspec.json.decode(text.encode(), type=form)
    except msgspec.MsgspecError as error:
        raise OrderError(f"PENSTOCK_ORDER is not a {form.__name__}: {error}. It was: {text[:200]}") from error
