"""What a check says of a record in a stream is what Great Expectations says of the same row at rest."""

import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from penstock.quality.expectations.compile import COMPILED, broken_when
from penstock.quality.expectations.library import library
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
WORDS = ["", " ", "a", "A", "ab", "a\nb", "é", "日本", "a'b", "a\\b", "%", "NaN", *DATES]
DOUBLES = [math.nan, math.inf, -math.inf, 0.0, -0.0, 0.1, 80.0, 80.0000001, -80.0, 1e300, 5e-324]
SMALL = [0.5, math.nan, math.inf, -80.0]
WHOLE = [0, 1, -1, 80, 2**31 - 1, -(2**31)]
LARGE = [*WHOLE, 2**53 + 1, 2**63 - 1, -(2**63) + 1]
DATE = r"\d{4}-\d{2}-\d{2}"
REGEXES = ["^a", "b$", DATE, r"^\s*$", "[é日]", "a.b", r"\\", "'", "%", "^(?!a).*$", "", "(?i)^AB?$"]


def one_of(values: list[Any]) -> st.SearchStrategy[Any]:
    return st.none() | st.sampled_from(values)


words = one_of(WORDS) | st.text(max_size=3)
doubles = one_of(DOUBLES) | st.floats()
rows = st.tuples(
    words, words, doubles, doubles, one_of(SMALL), one_of(LARGE), one_of(WHOLE), one_of([True, False])
)
BOUNDS: dict[str, list[Any]] = {
    "level": [0, 80, -80, 0.1, 1e300],
    "small": [0, 0.5, -80],
    "count": [0, 80, 2**40, 0.5],
    "few": [0, 80, -1, 0.5],
}
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


@st.composite
def bounds(draw: st.DrawFn, values: list[Any]) -> dict[str, Any]:
    ends = sorted(draw(st.lists(st.sampled_from(values), min_size=2, max_size=2)))
    given_ends = draw(st.sampled_from([("min_value",), ("max_value",), ("min_value", "max_value")]))
    strict = {name: draw(st.booleans()) for name in ("strict_min", "strict_max")}
    named = zip(("min_value", "max_value"), ends, strict=True)
    return {name: end for name, end in named if name in given_ends} | strict


@st.composite
def arguments(draw: st.DrawFn, kind: str) -> dict[str, Any]:
    text = draw(st.sampled_from(["name", "other"]))
    match kind.removeprefix("expect_"):
        case "column_values_to_be_between":
            column = draw(st.sampled_from(sorted(BOUNDS)))
            return {"column": column, **draw(bounds(BOUNDS[column]))}
        case "column_value_lengths_to_be_between":
            return {"column": text, **draw(bounds(list(range(6))))}
        case "column_value_lengths_to_equal":
            return {"column": text, "value": draw(st.integers(0, 5))}
        case "column_values_to_be_in_set" | "column_values_to_not_be_in_set":
            column = draw(st.sampled_from(sorted(SETS)))
            return {"column": column, "value_set": draw(st.lists(st.sampled_from(SETS[column]), min_size=1))}
        case "column_values_to_be_null" | "column_values_to_not_be_null":
            return {"column": draw(st.sampled_from(sorted(TYPES)))}
        case "column_values_to_match_regex" | "column_values_to_not_match_regex":
            return {"column": text, "regex": draw(st.sampled_from(REGEXES))}
        case "column_values_to_match_regex_list" | "column_values_to_not_match_regex_list" as listed:
            regexes = draw(st.lists(st.sampled_from(REGEXES), min_size=1, max_size=3))
            on = {} if "not" in listed else {"match_on": draw(st.sampled_from(["any", "all"]))}
            return {"column": text, "regex_list": regexes, **on}
        case "column_values_to_match_strftime_format":
            return {"column": text, "strftime_format": draw(st.sampled_from(FORMATS))}
        case "column_pair_values_to_be_in_set":
            one, other = draw(st.sampled_from([("name", "other"), ("count", "few")]))
            values = st.sampled_from([None, *SETS["name" if one == "name" else "few"]])
            pairs = draw(st.lists(st.tuples(values, values).map(list), min_size=1, max_size=4))
            ignored = draw(st.sampled_from(["both_values_are_missing", "either_value_is_missing", "neither"]))
            return {"column_A": one, "column_B": other, "value_pairs_set": pairs, "ignore_row_if": ignored}
        case "select_column_values_to_be_unique_within_record" | "multicolumn_values_to_be_equal":
            columns = draw(st.sampled_from([["name", "other"], ["level", "least", "few"], ["few", "count"]]))
            ignored = draw(st.sampled_from(["all_values_are_missing", "any_value_is_missing", "never"]))
            return {"column_list": columns, "ignore_row_if": ignored}
        case pair:
            one, other = draw(st.sampled_from(PAIRS))
            ignored = draw(st.sampled_from(["both_values_are_missing", "either_value_is_missing", "neither"]))
            equal = {"or_equal": draw(st.booleans())} if "greater" in pair else {}
            return {"column_A": one, "column_B": other, "ignore_row_if": ignored, **equal}


@st.composite
def every_expectation(draw: st.DrawFn) -> tuple[Expectation, ...]:
    """Each that can be compiled and that the library knows on Spark, with arguments of its own."""
    kinds = [kind for kind in COMPILED if "_like_" not in kind]
    return tuple(Expectation(kind, draw(arguments(kind)), f"e{n}") for n, kind in enumerate(kinds))


# Not made smaller when it fails: the library takes a second for each expectation, however few rows there are.
@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(st.lists(rows, min_size=150, max_size=200), every_expectation())
def test_the_verdict_on_every_row_is_that_of_the_library(
    spark: "SparkSession", content: list[tuple[Any, ...]], expectations: tuple[Expectation, ...]
) -> None:
    schema = ", ".join(["row INT", *(f"{name} {kind}" for name, kind in TYPES.items())])
    frame = (
        spark.createDataFrame([(number, *row) for number, row in enumerate(content)], schema)
        .coalesce(1)
        .cache()
    )
    checks = {one.name: f"coalesce({broken_when(one, TYPES)}, false)" for one in expectations}
    told = (
        frame.selectExpr("row", *(f"{sql} AS {name}" for name, sql in checks.items())).toArrow().to_pylist()
    )
    result = library().validated(Suite("topics/rows", expectations), frame, ["row"], "COMPLETE")
    assert len(result.results) == len(expectations)
    for one in result.results:
        config = one.expectation_config
        assert not one.exception_info.get("raised_exception"), (config, one.exception_info)
        unexpected = sorted(each["row"] for each in one.result.get("unexpected_index_list") or [])
        assert [row["row"] for row in told if row[config.meta["name"]]] == unexpected, config
    frame.unpersist()
