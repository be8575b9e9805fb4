"""Checks of records in a stream agree with Great Expectations on the same rows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle, product
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.examples import scale_examples

from penstock.quality.expectations.gx_library import load_library
from penstock.quality.expectations.sql_compiler import COMPILERS, compile_unexpected
from penstock.quality.expectations.suite import Expectation, Suite

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
TYPES = {
    "name": "STRING",
    "other": "STRING",
    "level": "DOUBLE",
    "least": "DOUBLE",
    "small": "FLOAT",
    "count": "BIGINT",
    "few": "INT",
    "on": "BOOLEAN",
}
DATES = [
    "2024-01-31",
    "2024-02-30",
    "2024-02-29",
    "31.12.1999",
    "29.2.00",
    "12:60",
    "23:59:61",
    "202\u0664-01-3\u0660",
    "1 FEB 99",
]
FORMATS = ["%Y-%m-%d", "%d.%m.%Y", "%d.%m.%y", "%H:%M", "%H:%M:%S", "%d %b %y", "%I%p", "%Y%%"]
SPECIAL = ["\U0001f600", "${env:HOME}"]
WORDS = ["", " ", "a", "A", "ab", "a\nb", "é", "日本", "a'b", "a\\b", "%", "NaN", *DATES, *SPECIAL]
DOUBLES = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 80.0, 80.0000001, -80.0, 1e300, 5e-324]
SMALL = [0.5, math.nan, math.inf, -80.0]
WHOLE = [0, 1, -1, 80, 2**31 - 1, -(2**31)]
LARGE = [*WHOLE, 2**53 + 1, 2**63 - 1, -(2**63) + 1]
DATE = r"\d{4}-\d{2}-\d{2}"
REGEXES = ["^a", "b$", DATE, r"^\s*$", "[é日]", "a.b", r"\\", "'", "%", "^(?!a).*$", "", "(?i)^AB?$"]


def optional_value(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.sampled_from(values)


words = optional_value(WORDS) | st.text(max_size=3)
doubles = optional_value(DOUBLES) | st.floats()
rows = st.tuples(
    words,
    words,
    doubles,
    doubles,
    optional_value(SMALL),
    optional_value(LARGE),
    optional_value(WHOLE),
    optional_value([True, False]),
)
BOUNDS: dict[str, tuple[Any, Any]] = {
    "level": (-80, 80),
    "least": (0.1, 1e300),
    "small": (-80, 0.5),
    "count": (0, 2**40),
    "few": (0.5, 80),
}
"""Numbers only: the library does not compare a column with a bound of another type."""
SETS: dict[str, list[Any]] = {
    "name": WORDS,
    "level": [0, 80.0, 0.1],
    "count": LARGE,
    "few": WHOLE,
    "on": [True, False],
}
PAIRS = [
    ("name", "other"),
    ("level", "least"),
    ("count", "few"),
    ("level", "few"),
    ("small", "level"),
    ("on", "on"),
]
COLUMN_LISTS = [["name", "other"], ["level", "least", "few"], ["few", "count"], ["level", "count", "few"]]
IN_SETS = [
    ("name", "other", [["a", "a"], ["", None], [None, "b"], ["é", "日本"]]),
    ("count", "few", [[0, 0], [1, None], [80, -1]]),
]


MISSING = ["both_values_are_missing", "either_value_is_missing", "neither"]
MISSING_OF_MANY = ["all_values_are_missing", "any_value_is_missing", "never"]
LISTS = [["^a"], ["^a", "b$"], ["[é日]", r"^\s*$", DATE], ["", "%"]]
Arguments = Iterator[dict[str, Any]]


def bound_arguments(least: Any, greatest: Any) -> Arguments:
    """Yield bounds on either side and on both, strict or not."""
    for strict in (False, True):
        yield {"min_value": least, "strict_min": strict}
        yield {"max_value": greatest, "strict_max": strict}
    for strict_min, strict_max in product([False, True], repeat=2):
        strictness = {"strict_min": strict_min, "strict_max": strict_max}
        yield {"min_value": least, "max_value": greatest, **strictness}


def combine(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Combine each item of one list with the first item of the other."""
    return [*product(one, other[:1]), *product(one[:1], other[1:])]


def generate_arguments(kind: str) -> Arguments:
    """Yield the arguments with which an expectation is compared."""
    match kind.removeprefix("expect_"):
        case "column_values_to_be_between":
            for column, bounds in BOUNDS.items():
                yield from ({"column": column, **each} for each in bound_arguments(*bounds))
        case "column_value_lengths_to_be_between":
            yield from ({"column": "name", **each} for each in bound_arguments(1, 2))
            yield {"column": "other", "min_value": 0, "max_value": 0}
        case "column_value_lengths_to_equal":
            yield from ({"column": "name", "value": length} for length in (0, 1, 2, 10))
        case "column_values_to_be_in_set" | "column_values_to_not_be_in_set":
            for column, values in SETS.items():
                yield {"column": column, "value_set": values[:1]}
                yield {"column": column, "value_set": values[1:]}
        case "column_values_to_be_null" | "column_values_to_not_be_null":
            yield from ({"column": column} for column in TYPES)
        case "column_values_to_match_regex" | "column_values_to_not_match_regex":
            yield from ({"column": "name", "regex": regex} for regex in REGEXES)
        case "column_values_to_match_regex_list":
            for regexes, match_on in product(LISTS, ["any", "all"]):
                yield {"column": "name", "regex_list": regexes, "match_on": match_on}
        case "column_values_to_not_match_regex_list":
            yield from ({"column": "name", "regex_list": regexes} for regexes in LISTS)
        case "column_values_to_match_strftime_format":
            yield from ({"column": "name", "strftime_format": form} for form in FORMATS)
        case "column_pair_values_to_be_in_set":
            for (one, other, pairs), ignored in combine(IN_SETS, MISSING):
                yield {"column_A": one, "column_B": other, "value_pairs_set": pairs, "ignore_row_if": ignored}
        case "select_column_values_to_be_unique_within_record" | "multicolumn_values_to_be_equal":
            for columns, ignored in combine(COLUMN_LISTS, MISSING_OF_MANY):
                yield {"column_list": columns, "ignore_row_if": ignored}
        case "column_pair_values_a_to_be_greater_than_b":
            for ((one, other), ignored), equal in product(combine(PAIRS, MISSING), [True, False]):
                yield {"column_A": one, "column_B": other, "ignore_row_if": ignored, "or_equal": equal}
        case "column_pair_values_to_be_equal":
            for (one, other), ignored in combine(PAIRS, MISSING):
                yield {"column_A": one, "column_B": other, "ignore_row_if": ignored}
        case unknown:
            raise AssertionError(f"{unknown} can be compiled, and no arguments are tried")


# The library supports LIKE patterns only in databases: `test_text_expectations.py` compares them.
KINDS = [kind for kind in COMPILERS if "_like_" not in kind]
EXPECTATIONS = {
    kind: [Expectation(kind, each, f"e{n}") for n, each in enumerate(generate_arguments(kind))]
    for kind in KINDS
}


def build_special_rows() -> list[tuple[Any, ...]]:
    """Return rows with every special value and many pairs of them; the same in every run."""
    columns = [WORDS, WORDS, DOUBLES, DOUBLES, SMALL, LARGE, WHOLE, [True, False]]
    rng = Random(7)
    mixed = [tuple(rng.choice([None, *values]) for values in columns) for _ in range(120)]
    longest = max(map(len, columns))
    each = [tuple([None, *values][n % (len(values) + 1)] for values in columns) for n in range(longest + 1)]
    equal_columns = [(word, word, level, level, 0.5, number, number, True)
             for word, level, number in zip(WORDS, cycle(DOUBLES), cycle(WHOLE))]  # fmt: skip
    return [*each, *equal_columns, *mixed]


@pytest.mark.parametrize("kind", KINDS)
def test_special_rows_are_judged_like_in_the_library(spark: "SparkSession", kind: str) -> None:
    compare_with_library(spark, build_special_rows(), EXPECTATIONS[kind])


@st.composite
def draw_expectations(draw: st.DrawFn) -> list[Expectation]:
    """Draw two expectations of each kind, which share one pass over the rows."""
    drawn = [
        one
        for each in EXPECTATIONS.values()
        for one in draw(st.lists(st.sampled_from(each), min_size=2, max_size=2))
    ]
    return [replace(one, name=f"e{n}") for n, one in enumerate(drawn)]


# A failure is not shrunk: the library takes a second for each expectation, however few rows there are.
@settings(
    max_examples=scale_examples(1),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.generate],
)
@given(st.lists(rows, min_size=150, max_size=200), draw_expectations())
def test_generated_rows_are_judged_like_in_the_library(
    spark: "SparkSession", content: list[tuple[Any, ...]], expectations: list[Expectation]
) -> None:
    compare_with_library(spark, content, expectations)


def compare_with_library(
    spark: "SparkSession", content: Sequence[tuple[Any, ...]], expectations: Sequence[Expectation]
) -> None:
    """Check every row with both, and compare the unexpected rows."""
    schema = ", ".join(["row INT", *(f"{name} {kind}" for name, kind in TYPES.items())])
    frame = (
        spark.createDataFrame([(number, *row) for number, row in enumerate(content)], schema)
        .coalesce(1)
        .cache()
    )
    checks = {one.name: f"coalesce({compile_unexpected(one, TYPES)}, false)" for one in expectations}
    checked = (
        frame.selectExpr("row", *(f"{sql} AS {name}" for name, sql in checks.items())).toArrow().to_pylist()
    )
    result = load_library().validate_rows(
        Suite("topics/rows", tuple(expectations)), frame, ["row"], "COMPLETE"
    )
    assert len(result.results) == len(expectations)
    for one in result.results:
        config = one.expectation_config
        assert not one.exception_info.get("raised_exception"), (config, one.exception_info)
        unexpected = sorted(each["row"] for each in one.result.get("unexpected_index_list") or [])
        assert [row["row"] for row in checked if row[config.meta["name"]]] == unexpected, config
    frame.unpersist()
