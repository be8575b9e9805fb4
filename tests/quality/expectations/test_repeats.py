"""What is to be unique over all batches: of the rows that an expectation means, and how many of them suffice."""

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
ALONE, TOGETHER = "expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique"


def expectation(kind: str, **kwargs: Any) -> Expectation:
    columns = {"column": "a"} if kind == ALONE else {"column_list": ["a", "b"]}
    return Expectation(kind, {**columns, **kwargs}, "unique")


@pytest.fixture(scope="module")
def told(spark: "SparkSession") -> Callable[..., tuple[ExpectationResult, ExpectationResult]]:
    """What the library says of young rows alone, and what we say of them with those before."""

    def asked(
        one: Expectation, young: Sequence[Row], old: Sequence[Row]
    ) -> tuple[ExpectationResult, ExpectationResult]:
        rows, earlier = (spark.createDataFrame(list(part), COLUMNS) for part in (young, old))
        suite = Suite("latest/minutes", (one,), file=Path("minutes.yaml"))
        (result,) = load_library().validate_rows(suite, rows, ["kind"]).results
        alone = to_expectation_result(result)
        return alone, recount_unexpected(alone, one, rows, find_repeated_rows(one, rows, earlier), ["kind"])

    return asked


def test_a_share_of_the_rows_is_the_share_that_the_library_means(
    told: Callable[..., tuple[ExpectationResult, ExpectationResult]],
) -> None:
    young: list[Row] = [*((str(n), n, "x") for n in range(10)), (None, None, "x"), (None, 3, "x")]
    one = expectation(ALONE, mostly=0.9)
    _, found = told(one, young, [("3", 0, "x")])
    assert (found.passed, found.unexpected) == (True, 1)
    _, found = told(one, young, [("3", 0, "x"), ("4", 0, "x")])
    assert (found.passed, found.unexpected) == (False, 2)


@pytest.mark.parametrize(
    "condition", ["kind = 'insert'", 'col("kind") == "insert"'], ids=["spark", "library"]
)
@pytest.mark.parametrize("kind", [ALONE, TOGETHER])
def test_rows_that_a_condition_leaves_out_repeat_nothing(
    told: Callable[..., tuple[ExpectationResult, ExpectationResult]],
    spark: "SparkSession",
    kind: str,
    condition: str,
) -> None:
    parser = "spark" if condition.startswith("kind") else "great_expectations"
    one = expectation(kind, row_condition=condition, condition_parser=parser)
    young: list[Row] = [("p", 1, "insert"), ("p", 1, "retract"), ("q", 1, "insert"), ("q", 1, "insert")]
    _, found = told(one, young, [("p", 1, "retract")])
    assert (found.passed, found.unexpected) == (False, 2)
    _, found = told(one, young[:3], [("p", 1, "retract")])
    assert found.passed
    _, found = told(one, young[:3], [("p", 1, "insert")])
    assert (found.passed, found.unexpected) == (False, 1)
    rows = spark.createDataFrame(young, COLUMNS)
    wrong = select_unexpected_rows(one, rows)
    assert wrong is not None
    assert [row["a"] for row in wrong.collect()] == ["q", "q"]


def test_the_rows_are_told_that_a_condition_means(spark: "SparkSession") -> None:
    rows = spark.createDataFrame([("p", 1, "insert"), ("q", 9, "retract"), ("r", 8, "insert")], COLUMNS)
    kwargs = {"column": "b", "max_value": 5, "row_condition": "kind = 'insert'", "condition_parser": "spark"}
    wrong = select_unexpected_rows(Expectation("expect_column_values_to_be_between", kwargs, "low"), rows)
    assert wrong is not None
    assert [row["a"] for row in wrong.collect()] == ["r"]


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
    st.sampled_from([ALONE, TOGETHER]),
    IGNORED,
    st.sampled_from([1, 0.9, 0.75, 0.5]),
    st.booleans(),
)
def test_nothing_before_is_what_the_library_says_and_rows_before_count_as_the_same_rows_beside(
    told: Callable[..., tuple[ExpectationResult, ExpectationResult]],
    young: list[Row],
    old: list[Row],
    kind: str,
    ignored: str | None,
    mostly: float,
    conditioned: bool,
) -> None:
    more: dict[str, Any] = {"mostly": mostly} if mostly < 1 else {}
    if ignored is not None and kind == TOGETHER:
        more["ignore_row_if"] = ignored
    if conditioned:
        more |= {"row_condition": "kind = 'insert'", "condition_parser": "spark"}
    one = expectation(kind, **more)
    alone, same = told(one, young, [])
    assert same == alone
    both, _ = told(one, [*young, *old], [])
    _, after = told(one, young, old)
    # Of all rows together the library finds those that repeat; what is young among them is what we find.
    assert (after.unexpected or 0) <= (both.unexpected or 0)
    assert (after.unexpected or 0) >= (alone.unexpected or 0)
    wrong = [
        row
        for row in meant(young, ignored, kind, conditioned)
        if repeated(row, young, old, ignored, kind, conditioned)
    ]
    assert (after.unexpected or 0) == len(wrong)


def meant(rows: Sequence[Row], ignored: str | None, kind: str, conditioned: bool) -> list[tuple[Any, ...]]:
    """The rows that count, as the columns that are to be unique."""
    named = [(row[:1] if kind == ALONE else row[:2], row[2]) for row in rows]
    named = [(key, what) for key, what in named if what == "insert" or not conditioned]
    match "all_values_are_missing" if kind == ALONE else ignored or "all_values_are_missing":
        case "all_values_are_missing":
            return [key for key, _ in named if any(value is not None for value in key)]
        case "any_value_is_missing":
            return [key for key, _ in named if all(value is not None for value in key)]
        case _:
            return [key for key, _ in named]


def repeated(
    key: tuple[Any, ...],
    young: Sequence[Row],
    old: Sequence[Row],
    ignored: str | None,
    kind: str,
    conditioned: bool,
) -> bool:
    """Whether there is another row like it."""
    return meant(young, ignored, kind, conditioned).count(key) > 1 or key in meant(
        old, ignored, kind, conditioned
    )
