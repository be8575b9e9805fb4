"""Expectations compiled to SQL, and those that cannot be."""

from typing import Any

import pytest

from penstock.engine.plan.sources import Column
from penstock.quality.errors import NotCheckableInStreamError
from penstock.quality.expectations.gx_library import load_library
from penstock.quality.expectations.sql_compiler import COMPILERS, compile_row_check, compile_unexpected
from penstock.quality.expectations.suite import Expectation

COLUMNS = {"name": "STRING", "level": "DOUBLE", "count": "BIGINT", "on": "BOOLEAN", "tags": "ARRAY<STRING>"}


def test_a_misspelled_expectation_gets_a_suggestion() -> None:
    expectation = Expectation(
        "expect_column_values_to_be_betwen", {"column": "level", "min_value": 0}, "n", "warn"
    )
    with pytest.raises(NotCheckableInStreamError, match="Did you mean expect_column_values_to_be_between"):
        compile_unexpected(expectation, COLUMNS)


LEVEL = {"column": "level"}


PAIR = {"column_A": "count", "column_B": "level"}


UNCHECKABLE = [
    ("column_values_to_be_unique", {"column": "name"}, "needs several rows"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 0, "mostly": 0.9}, "mostly needs several"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 0, "row_condition": "on"}, "row_condition"),
    ("column_values_to_be_between", {"column": "gone", "min_value": 0}, "unknown field 'gone'"),
    ("column_values_to_be_between", LEVEL, "min_value and max_value are both missing"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 2, "max_value": 1}, "is above"),
    ("column_values_to_be_between", {"column": "name", "min_value": "a"}, "Use a numeric field"),
    ("column_values_to_be_between", {**LEVEL, "min_value": "2"}, "cannot be compared with DOUBLE"),
    ("column_values_to_be_between", {"column": "on", "min_value": 2}, "is BOOLEAN"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 0, "parse": True}, "parse is not supported"),
    ("column_values_to_be_in_set", {"column": "count", "value_set": ["a"]}, "cannot be compared with"),
    ("column_values_to_be_in_set", {"column": "name", "value_set": []}, "value_set is []"),
    ("column_values_to_match_regex", {**LEVEL, "regex": "a"}, "is DOUBLE"),
    ("column_value_lengths_to_equal", {"column": "tags", "value": 2}, "is ARRAY<STRING>"),
    ("column_pair_values_to_be_equal", {"column_A": "name", "column_B": "level"}, "is STRING and"),
    ("column_pair_values_to_be_equal", {**PAIR, "ignore_row_if": "x"}, "ignore_row_if is 'x'"),
    ("column_pair_values_a_to_be_greater_than_b", {**PAIR, "or_equal": "no"}, "or_equal is 'no'"),
    ("column_values_to_be_between", {**LEVEL, "min_value": 0, "strict_min": "no"}, "strict_min is 'no'"),
    ("column_values_to_be_between", {"column": ["level"], "min_value": 0}, "unknown field ['level']"),
    ("column_values_to_be_between", {"column": "count", "max_value": 2**53}, "compares as DOUBLE"),
    ("column_value_lengths_to_be_between", {"column": "name", "min_value": "1"}, "min_value is '1'"),
    ("column_value_lengths_to_be_between", {"column": "name", "max_value": 1.5}, "max_value is 1.5"),
    ("column_value_lengths_to_be_between", {"column": "name", "max_value": True}, "max_value is True"),
    ("column_value_lengths_to_equal", {"column": "name", "value": 1.5}, "value is 1.5"),
    ("column_values_to_match_regex_list", {"column": "name", "regex_list": "^a"}, "regex_list is '^a'"),
    ("column_values_to_not_match_regex_list", {"column": "name", "regex_list": [1]}, "regex_list is [1]"),
    ("column_values_to_match_like_pattern_list", {"column": "name", "like_pattern_list": "a%"}, "is 'a%'"),
    ("column_values_to_match_regex", {"column": "name", "regex": "(a"}, "'(a' is invalid: unclosed ("),
    ("column_values_to_match_regex_list", {"column": "name", "regex_list": ["a", "[b"]}, "unclosed ["),
]


@pytest.mark.parametrize(
    ("kind", "kwargs", "message"), UNCHECKABLE, ids=[f"{k}-{message}" for k, _, message in UNCHECKABLE]
)
def test_an_expectation_that_cannot_be_checked_row_by_row_is_refused(
    kind: str, kwargs: dict[str, object], message: str
) -> None:
    with pytest.raises(NotCheckableInStreamError) as refused:
        compile_unexpected(Expectation(f"expect_{kind}", kwargs, "named", "warn"), COLUMNS)
    assert "named" in str(refused.value)
    assert message in str(refused.value)


def test_text_is_quoted_in_sql() -> None:
    kwargs = {"column": "name", "regex": r"^\d'; DROP"}
    expectation = Expectation("expect_column_values_to_match_regex", kwargs, "n", "warn")
    assert (
        compile_unexpected(expectation, COLUMNS)
        == r"`name` IS NOT NULL AND NOT (`name` RLIKE '^\\d\'; DROP')"
    )


def test_spark_variables_in_text_are_not_substituted() -> None:
    kwargs = {"column": "name", "value_set": ["${env:HOME}"]}
    expectation = Expectation("expect_column_values_to_be_in_set", kwargs, "n", "warn")
    assert compile_unexpected(expectation, COLUMNS).endswith(r"NOT (`name` IN ('\u0024{env:HOME}'))")


def test_every_compiled_expectation_exists_in_the_library() -> None:
    for kind in COMPILERS:
        assert load_library().find_expectation(kind) is not None


NESTED_COLUMNS = (
    Column("amount", "DECIMAL(12, 2)"),
    Column("ordered_on", "DATE"),
    Column("address", "STRUCT<`city`: STRING, `home`: STRUCT<`floor`: INT>>"),
)


@pytest.mark.parametrize(
    ("kind", "kwargs", "violation"),
    [
        ("values_to_not_be_null", {"column": "address.city"}, "`address`.`city` IS NULL"),
        (
            "values_to_be_between",
            {"column": "address.home.floor", "min_value": 0},
            "`address`.`home`.`floor` IS NOT NULL AND NOT (`address`.`home`.`floor` >= 0)",
        ),
        (
            "values_to_be_between",
            {"column": "amount", "max_value": 1000},
            "`amount` IS NOT NULL AND NOT (`amount` <= 1000)",
        ),
        (
            "values_to_be_in_set",
            {"column": "ordered_on", "value_set": ["2026-01-31"]},
            "`ordered_on` IS NOT NULL AND NOT (`ordered_on` IN ('2026-01-31'))",
        ),
    ],
)
def test_members_of_structs_decimals_and_dates_are_checked(kind: str, kwargs: Any, violation: str) -> None:
    expectation = Expectation(f"expect_column_{kind}", kwargs, "n", "warn")
    assert compile_row_check(expectation, NESTED_COLUMNS).violation_sql == violation


@pytest.mark.parametrize("column", ["address.ctiy", "address.city.name", "amount.cents"])
def test_an_unknown_member_is_refused(column: str) -> None:
    expectation = Expectation("expect_column_values_to_not_be_null", {"column": column}, "n", "warn")
    with pytest.raises(NotCheckableInStreamError, match=r"Use one of: .*address\.city"):
        compile_row_check(expectation, NESTED_COLUMNS)
