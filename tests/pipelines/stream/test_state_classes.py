"""A state class that cannot be decoded is refused when the pipeline is defined."""

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


def keep_nothing(_: KeyContext[Any]) -> KeyUpdate[Any]:
    """A stateful function without state."""
    return KeyUpdate(None)


class NoDataclass:
    """A class that declares fields, but is not a dataclass."""

    number: int


@dataclass
class WithDeque:
    """A state with an unsupported container."""

    waiting: deque[int]


@dataclass
class Nested:
    """A state with an unsupported container inside another."""

    by_day: dict[str, list[WithDeque | None]]


@dataclass
class ListOrSet:
    """A list or a set, which have the same encoding."""

    seen: list[int] | set[int]


@dataclass
class UnknownType:
    """A state with an annotation that does not exist."""

    place: "Nowhere"  # noqa: F821


class Pair(NamedTuple):
    """Two values."""

    one: int
    other: str | None


class EveryType(msgspec.Struct):
    """A state with all supported types, itself included."""

    at: datetime
    pairs: dict[tuple[int, str], Pair] = {}
    seen: frozenset[str] = frozenset()
    before: "EveryType | None" = None
    other: Any = None


@dataclass
class OnlyDefaults:
    """A state whose fields have defaults."""

    words: list[str] = field(default_factory=list)


def define_stateful_pipeline(state_class: type[Any]) -> None:
    """Define a pipeline with a state of this class."""
    _ = (
        read("sensors")
        .key("device")
        .stateful(keep_nothing, state=state_class, returns={"n": "BIGINT"})
        .write("t", mode="log")
        .plan
    )


@pytest.mark.parametrize(
    ("state_class", "message"),
    [
        (NoDataclass, "NoDataclass declares number, but is not a dataclass. Give a dataclass"),
        (WithDeque, "WithDeque has a deque"),
        (Nested, "Nested has a deque"),
        (ListOrSet, "ListOrSet: Type unions may not contain"),
        (UnknownType, "UnknownType: name 'Nowhere' is not defined"),
    ],
)
def test_a_state_class_that_cannot_be_decoded_is_refused(state_class: type[Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        define_stateful_pipeline(state_class)


@pytest.mark.parametrize("state_class", [Pair, EveryType, OnlyDefaults, dict, int, object])
def test_a_state_class_that_can_be_decoded_is_accepted(state_class: type[Any]) -> None:
    define_stateful_pipeline(state_class)


def test_state_columns_need_no_dataclass() -> None:
    assert [column.name for column in state_columns(NoDataclass)] == ["number"]
