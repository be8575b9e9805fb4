"""An encoded state decodes to an equal one, and equal states have equal bytes."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engine.operators.stateful.state_encoding import encode_state


class Visit(msgspec.Struct, frozen=True):
    """A part of a state that is not a dataclass."""

    words: dict[int, str] = {}
    name: str = ""


@dataclass(frozen=True, slots=True)
class EncodedState:
    """A state with all unordered containers."""

    by_time: dict[int, dict[int, int]] = field(default_factory=dict)
    by_word: dict[str, frozenset[str]] = field(default_factory=dict)
    days: frozenset[int] = frozenset()
    visits: tuple[Visit, ...] = ()


NUMBERS = st.integers(-(2**40), 2**40)
WORDS = st.text(max_size=3)
STATES = st.builds(
    EncodedState,
    by_time=st.dictionaries(NUMBERS, st.dictionaries(NUMBERS, NUMBERS, max_size=3), max_size=4),
    by_word=st.dictionaries(WORDS, st.frozensets(WORDS, max_size=3), max_size=3),
    days=st.frozensets(NUMBERS, max_size=5),
    visits=st.lists(st.builds(Visit, words=st.dictionaries(NUMBERS, WORDS, max_size=3), name=WORDS)).map(
        tuple
    ),
)


def reverse_order(value: Any) -> Any:
    """The same dictionary, with another insertion order."""
    return dict(reversed(value.items()))


@given(STATES)
def test_a_state_round_trips(state: EncodedState) -> None:
    assert msgspec.msgpack.decode(encode_state(state), type=EncodedState) == state


@given(STATES)
def test_bytes_do_not_depend_on_insertion_order(state: EncodedState) -> None:
    reordered = EncodedState(
        reverse_order({time: reverse_order(counts) for time, counts in state.by_time.items()}),
        reverse_order(state.by_word),
        frozenset(sorted(state.days, reverse=True)),
        tuple(Visit(reverse_order(visit.words), visit.name) for visit in state.visits),
    )
    assert encode_state(reordered) == encode_state(state)


def test_a_value_without_encoding_raises() -> None:
    with pytest.raises(TypeError, match="object"):
        encode_state({1: object()})
