"""What a function remembers comes back from bytes as it was, and equal values are equal bytes."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.operators.stateful.state_encoding import encode_state


class Place(msgspec.Struct, frozen=True):
    """A part of a state that is no dataclass."""

    seen: dict[int, str] = {}
    name: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """A state with everything that has no order of its own."""

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
    """The same dictionary, filled in another order."""
    return dict(reversed(value.items()))


@given(MEMORIES)
def test_a_state_comes_back_as_it_was(memory: Memory) -> None:
    assert msgspec.msgpack.decode(encode_state(memory), type=Memory) == memory


@given(MEMORIES)
def test_the_order_of_filling_does_not_show(memory: Memory) -> None:
    again = Memory(
        turned({time: turned(counts) for time, counts in memory.by_time.items()}),
        turned(memory.by_word),
        frozenset(sorted(memory.days, reverse=True)),
        tuple(Place(turned(place.seen), place.name) for place in memory.places),
    )
    assert encode_state(again) == encode_state(memory)


def test_what_has_no_form_in_bytes_is_refused_as_it_was() -> None:
    with pytest.raises(TypeError, match="object"):
        encode_state({1: object()})
