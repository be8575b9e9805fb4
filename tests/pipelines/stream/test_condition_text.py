"""A condition is written as text that gives the same condition."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples

from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.definition.condition_text import format_condition
from penstock.engine.definition.predicates import (
    COMPARISON_OPERATORS,
    Comparison,
    Conjunction,
    Disjunction,
    IsNotTrue,
    IsNull,
    Negation,
    Predicate,
)

names = st.one_of(
    st.sampled_from(["speed", "a.b", "null", "Is", "2nd", "my field"]), st.text("ab`é \n", min_size=1)
)
fields = names.map(lambda name: name.replace("`", "x")).filter(lambda name: name.strip() != "")
constants = st.one_of(
    st.booleans(),
    st.integers(-(10**36), 10**36),
    st.floats(-1e15, 1e15).map(lambda value: round(value, 6)),
    st.text("ab'\\\"\n$", max_size=5),
)
leaves: st.SearchStrategy[Predicate] = st.one_of(
    st.builds(Comparison, fields, st.sampled_from(COMPARISON_OPERATORS), constants),  # type: ignore[arg-type]
    st.builds(IsNull, fields),
)


def combine(inner: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Negation, inner),
        st.builds(IsNotTrue, inner),
        st.builds(Conjunction, several),
        st.builds(Disjunction, several),
    )


conditions = st.recursive(leaves, combine, max_leaves=6)


@settings(max_examples=scale_examples(60), deadline=None)
@given(conditions)
def test_the_text_of_a_condition_gives_the_condition(condition: Predicate) -> None:
    assert parse_condition(format_condition(condition), "filter") == condition


@pytest.mark.parametrize(
    ("written", "formatted"),
    [
        ("kind='end'  and(speed>50 or speed is null)", "kind = 'end' and (speed > 50 or speed is null)"),
        ("not(speed is null) and ok", "speed is not null and ok = true"),
        ("(speed > 50) is not true", "(speed > 50) is not true"),
    ],
)
def test_a_condition_is_written_as_a_person_would(written: str, formatted: str) -> None:
    assert format_condition(parse_condition(written, "filter")) == formatted
