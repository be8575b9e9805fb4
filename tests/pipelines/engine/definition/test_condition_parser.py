"""Conditions as text become predicates, which Spark reads as SQL and the reference evaluates."""

from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.conformance.reference.predicates import evaluate_predicate
from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.definition.predicates import (
    Comparison,
    Conjunction,
    Disjunction,
    IsNull,
    Negation,
    Predicate,
    predicate_sql,
)
from penstock.engine.errors import DefinitionError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind = 'end'", Comparison("kind", "=", "end")),
        ("kind <> 'it''s'", Comparison("kind", "!=", "it's")),
        ("speed >= -3.5", Comparison("speed", ">=", -3.5)),
        ("done", Comparison("done", "=", value=True)),
        ("not done", Negation(Comparison("done", "=", value=True))),
        ("`a field` is not null", Negation(IsNull("a field"))),
        (
            "a = 1 or b = 2 and c = 3",
            Disjunction(
                (Comparison("a", "=", 1), Conjunction((Comparison("b", "=", 2), Comparison("c", "=", 3))))
            ),
        ),
        (
            "(a = 1 OR b = 2) AND c is null",
            Conjunction((Disjunction((Comparison("a", "=", 1), Comparison("b", "=", 2))), IsNull("c"))),
        ),
    ],
)
def test_a_condition_is_read(text: str, expected: Predicate) -> None:
    assert parse_condition(text, "field") == expected


@pytest.mark.parametrize(
    "text", ["", "a =", "= 3", "a = b", "(a = 1", "a = 1)", "a is 3", "a = 1 b = 2", "a ; b", "and"]
)
def test_an_invalid_condition_is_refused(text: str) -> None:
    with pytest.raises(DefinitionError, match="Write a condition"):
        parse_condition(text, "field")


numbers = st.builds(
    Comparison, st.sampled_from("ab"), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]), st.integers(-2, 2)
)
texts = st.builds(
    Comparison, st.just("t"), st.sampled_from(["=", "!="]), st.sampled_from(["", "x", "it's", "a\tb"])
)
predicates: st.SearchStrategy[Predicate] = st.recursive(
    st.one_of(numbers, texts, st.builds(IsNull, st.sampled_from("abt"))),
    lambda inner: st.one_of(
        st.builds(Negation, inner),
        st.builds(Conjunction, st.lists(inner, min_size=1, max_size=3).map(tuple)),
        st.builds(Disjunction, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)
records = st.fixed_dictionaries(
    {"a": st.none() | st.integers(-2, 2), "b": st.none() | st.integers(-2, 2), "t": st.none() | st.just("x")}
)


@settings(deadline=None)
@given(predicates, records)
def test_the_sql_of_a_condition_equals_its_evaluation(predicate: Predicate, record: dict[str, Any]) -> None:
    sql = predicate_sql(predicate).replace("`", '"').replace("\\'", "''")
    row = "SELECT CAST($a AS BIGINT) AS a, CAST($b AS BIGINT) AS b, CAST($t AS VARCHAR) AS t"
    ((answer,),) = duckdb.execute(f"SELECT {sql} FROM ({row})", record).fetchall()
    assert evaluate_predicate(record, predicate) == answer


def test_text_like_a_spark_variable_is_not_substituted() -> None:
    assert predicate_sql(Comparison("t", "=", "${env:HOME}")).endswith(r"'\u0024{env:HOME}'")
    assert predicate_sql(Comparison("t", "=", "5 $")).endswith("'5 $'")
