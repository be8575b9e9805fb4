"""An encoded state decodes to an equal one, and equal states have equal bytes."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.operators.stateful.state_encoding import encode_state


class Place(msgspec.Struct, frozen=True):
    """A part of a state that is not a dataclass."""

    seen: dict[int, str] = {}
    name: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """A state with all unordered containers."""

    by_time: dict[int, dict[int, int]] = field(default_factory=dict)
    by_word: dict[str, frozenset[str]] = field(default_factory=dict)
    days: frozenset[int] = frozenset()
    places: tuple[Place, ...] = ()


NUMBERS = st.integers(-(2**40), 2**40)
WORDS = st.text(max_size=3)
MEMORIES = st.builds(
    Memory,
    by_time=st.dictionaries(NUMBERS, st.dictionaries(NUMBERS, NUMBERS, max_size=3), max_size=4),
    by_word=st.dictionaries(WORDS, st.frozensets(WORDS, max_size=3), max_size=3),
    days=st.frozensets(NUMBERS, max_size=5),
    places=st.lists(st.builds(Place, seen=st.dictionaries(NUMBERS, WORDS, max_size=3), name=WORDS)).map(
        tuple
    ),
)


def turned(value: Any) -> Any:
    """The same dictionary, with another insertion order."""
    return dict(reversed(value.items()))


@given(MEMORIES)
def test_a_state_round_trips(memory: Memory) -> None:
    assert msgspec.msgpack.decode(encode_state(memory), type=Memory) == memory


@given(MEMORIES)
def test_bytes_do_not_depend_on_insertion_order(memory: Memory) -> None:
    again = Memory(
        turned({time: turned(counts) for time, counts in memory.by_time.items()}),
        turned(memory.by_word),
        frozenset(sorted(memory.days, reverse=True)),
        tuple(Place(turned(place.seen), place.name) for place in memory.places),
    )
    assert encode_state(again) == encode_state(memory)


def test_a_value_without_encoding_raises() -> None:
    with pytest.raises(TypeError, match="object"):
        encode_state({1: object()})
