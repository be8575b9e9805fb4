"""A class that could never be read again is refused as a memory when the pipeline is defined."""

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
import pytest

from penstock.engine.errors import DefinitionError
from penstock.engine.functions.stateful import KeyContext, KeyUpdate
from penstock.engine.plan.stateful_function import state_columns
from penstock.stream import read


def silent(_: KeyContext[Any]) -> KeyUpdate[Any]:
    """Remember nothing."""
    return KeyUpdate(None)


class Undecided:
    """Somebody forgot that it is to be a dataclass."""

    number: int


@dataclass
class Queued:
    """What waits in a queue."""

    waiting: deque[int]


@dataclass
class Nested:
    """A memory with another in it."""

    by_day: dict[str, list[Queued | None]]


@dataclass
class Either:
    """A list or a set: in bytes the two are alike."""

    seen: list[int] | set[int]


@dataclass
class Unknown:
    """A type that is nowhere."""

    place: "Nowhere"  # noqa: F821


class Pair(NamedTuple):
    """Two values."""

    one: int
    other: str | None


class Known(msgspec.Struct):
    """Everything that may be remembered, itself included."""

    at: datetime
    pairs: dict[tuple[int, str], Pair] = {}
    seen: frozenset[str] = frozenset()
    before: "Known | None" = None
    other: Any = None


@dataclass
class Nothing:
    """A memory without fields."""

    words: list[str] = field(default_factory=list)


def remembered(kind: type[Any]) -> None:
    """Define a pipeline whose function remembers such values."""
    _ = (
        read("sensors")
        .key("device")
        .stateful(silent, state=kind, returns={"n": "BIGINT"})
        .write("t", mode="log")
        .plan
    )


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Undecided, "Undecided declares number, but is not a dataclass. Give a dataclass"),
        (Queued, "Queued has a deque"),
        (Nested, "Nested has a deque"),
        (Either, "Either: Type unions may not contain"),
        (Unknown, "Unknown: name 'Nowhere' is not defined"),
    ],
)
def test_what_could_not_be_read_again_is_refused(kind: type[Any], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        remembered(kind)


@pytest.mark.parametrize("kind", [Pair, Known, Nothing, dict, int, object])
def test_whatever_comes_back_from_bytes_may_be_remembered(kind: type[Any]) -> None:
    remembered(kind)


def test_the_columns_of_a_vectorized_memory_ask_for_no_dataclass() -> None:
    assert [column.name for column in state_columns(Undecided)] == ["number"]
