"""Uniqueness across batches, with conditions, ignored rows and `mostly`."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.quality.expectations.check_results import ExpectationResult, to_expectation_result
from penstock.quality.expectations.gx_library import load_library
from penstock.quality.expectations.suite import Expectation, Suite
from penstock.quality.expectations.table_checks import select_unexpected_rows
from penstock.quality.expectations.uniqueness import find_repeated_rows, recount_unexpected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
Row = tuple[str | None, int | None, str]
COLUMNS = "a STRING, b INT, kind STRING"
SINGLE_COLUMN, COMPOUND = "expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique"


def build_expectation(kind: str, **kwargs: Any) -> Expectation:
    columns = {"column": "a"} if kind == SINGLE_COLUMN else {"column_list": ["a", "b"]}
    return Expectation(kind, {**columns, **kwargs}, "unique")


@pytest.fixture(scope="module")
def validate(spark: "SparkSession") -> Callable[..., tuple[ExpectationResult, ExpectationResult]]:
    """Return the library's result for new rows alone, and ours for them with earlier rows."""

    def validate_rows(
        expectation: Expectation, new_rows: Sequence[Row], old_rows: Sequence[Row]
    ) -> tuple[ExpectationResult, ExpectationResult]:
        rows, earlier = (spark.createDataFrame(list(part), COLUMNS) for part in (new_rows, old_rows))
        suite = Suite("latest/minutes", (expectation,), file=Path("minutes.yaml"))
        (result,) = load_library().validate_rows(suite, rows, ["kind"]).results
        alone = to_expectation_result(result)
        return alone, recount_unexpected(
            alone, expectation, rows, find_repeated_rows(expectation, rows, earlier), ["kind"]
        )

    return validate_rows


def test_mostly_counts_rows_like_the_library(
    validate: Callable[..., tuple[ExpectationResult, ExpectationResult]],
) -> None:
    new_rows: list[Row] = [*((str(n), n, "x") for n in range(10)), (None, None, "x"), (None, 3, "x")]
    expectation = build_expectation(SINGLE_COLUMN, mostly=0.9)
    _, result = validate(expectation, new_rows, [("3", 0, "x")])
    assert (result.passed, result.unexpected) == (True, 1)
    _, result = validate(expectation, new_rows, [("3", 0, "x"), ("4", 0, "x")])
    assert (result.passed, result.unexpected) == (False, 2)


@pytest.mark.parametrize(
    "condition", ["kind = 'insert'", 'col("kind") == "insert"'], ids=["spark", "library"]
)
@pytest.mark.parametrize("kind", [SINGLE_COLUMN, COMPOUND])
def test_rows_excluded_by_a_condition_are_no_duplicates(
    validate: Callable[..., tuple[ExpectationResult, ExpectationResult]],
    spark: "SparkSession",
    kind: str,
    condition: str,
) -> None:
    parser = "spark" if condition.startswith("kind") else "great_expectations"
    expectation = build_expectation(kind, row_condition=condition, condition_parser=parser)
    new_rows: list[Row] = [("p", 1, "insert"), ("p", 1, "retract"), ("q", 1, "insert"), ("q", 1, "insert")]
    _, result = validate(expectation, new_rows, [("p", 1, "retract")])
    assert (result.passed, result.unexpected) == (False, 2)
    _, result = validate(expectation, new_rows[:3], [("p", 1, "retract")])
    assert result.passed
    _, result = validate(expectation, new_rows[:3], [("p", 1, "insert")])
    assert (result.passed, result.unexpected) == (False, 1)
    rows = spark.createDataFrame(new_rows, COLUMNS)
    unexpected = select_unexpected_rows(expectation, rows)
    assert unexpected is not None
    assert [row["a"] for row in unexpected.collect()] == ["q", "q"]


def test_unexpected_rows_satisfy_the_row_condition(spark: "SparkSession") -> None:
    rows = spark.createDataFrame([("p", 1, "insert"), ("q", 9, "retract"), ("r", 8, "insert")], COLUMNS)
    kwargs = {"column": "b", "max_value": 5, "row_condition": "kind = 'insert'", "condition_parser": "spark"}
    unexpected = select_unexpected_rows(
        Expectation("expect_column_values_to_be_between", kwargs, "low"), rows
    )
    assert unexpected is not None
    assert [row["a"] for row in unexpected.collect()] == ["r"]


ROW = st.tuples(
    st.sampled_from([None, "p", "q", "r"]),
    st.sampled_from([None, 1, 2]),
    st.sampled_from(["insert", "retract"]),
)
IGNORED = st.sampled_from([None, "all_values_are_missing", "any_value_is_missing", "never"])


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(ROW, min_size=1, max_size=9),
    st.lists(ROW, max_size=9),
    st.sampled_from([SINGLE_COLUMN, COMPOUND]),
    IGNORED,
    st.sampled_from([1, 0.9, 0.75, 0.5]),
    st.booleans(),
)
def test_earlier_rows_count_like_rows_of_the_same_batch(
    validate: Callable[..., tuple[ExpectationResult, ExpectationResult]],
    new_rows: list[Row],
    old_rows: list[Row],
    kind: str,
    ignored: str | None,
    mostly: float,
    conditioned: bool,
) -> None:
    more: dict[str, Any] = {"mostly": mostly} if mostly < 1 else {}
    if ignored is not None and kind == COMPOUND:
        more["ignore_row_if"] = ignored
    if conditioned:
        more |= {"row_condition": "kind = 'insert'", "condition_parser": "spark"}
    expectation = build_expectation(kind, **more)
    alone, unchanged = validate(expectation, new_rows, [])
    assert unchanged == alone
    combined, _ = validate(expectation, [*new_rows, *old_rows], [])
    _, recounted = validate(expectation, new_rows, old_rows)
    # The library finds the duplicates of all rows together; we find the new rows among them.
    assert (recounted.unexpected or 0) <= (combined.unexpected or 0)
    assert (recounted.unexpected or 0) >= (alone.unexpected or 0)
    unexpected = [
        row
        for row in select_counted(new_rows, ignored, kind, conditioned)
        if is_duplicate(row, new_rows, old_rows, ignored, kind, conditioned)
    ]
    assert (recounted.unexpected or 0) == len(unexpected)


def select_counted(
    rows: Sequence[Row], ignored: str | None, kind: str, conditioned: bool
) -> list[tuple[Any, ...]]:
    """Return the unique columns of the rows that count."""
    keys = [(row[:1] if kind == SINGLE_COLUMN else row[:2], row[2]) for row in rows]
    keys = [(key, row_kind) for key, row_kind in keys if row_kind == "insert" or not conditioned]
    match "all_values_are_missing" if kind == SINGLE_COLUMN else ignored or "all_values_are_missing":
        case "all_values_are_missing":
            return [key for key, _ in keys if any(value is not None for value in key)]
        case "any_value_is_missing":
            return [key for key, _ in keys if all(value is not None for value in key)]
        case _:
            return [key for key, _ in keys]


def is_duplicate(
    key: tuple[Any, ...],
    new_rows: Sequence[Row],
    old_rows: Sequence[Row],
    ignored: str | None,
    kind: str,
    conditioned: bool,
) -> bool:
    """Whether another row has the same key."""
    return select_counted(new_rows, ignored, kind, conditioned).count(key) > 1 or key in select_counted(
        old_rows, ignored, kind, conditioned
    )
