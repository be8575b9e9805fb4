"""Uniqueness across all batches of a table: a row may not repeat a row of an earlier batch."""

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.engine.definition.predicates import quote_column
from penstock.engine.plan.stages import Stage
from penstock.quality.expectations.check_results import ExpectationResult, to_json_value
from penstock.quality.expectations.gx_library import load_library
from penstock.quality.expectations.suite import Expectation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNIQUE_EXPECTATIONS = ("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
SAME_ROWS_COLUMN, SEEN_BEFORE_COLUMN = "_same_rows", "_seen_before"
MAX_REPEATED_EXAMPLES = 20
NULL_CONDITION_JOINERS = {"all_values_are_missing": " AND ", "any_value_is_missing": " OR ", "never": ""}
"""For each value of `ignore_row_if`, the operator between the null tests; empty if no row is ignored."""
WINDOW_BOUND_COLUMNS = {"window_start", "window_end"}


def unique_columns(expectation: Expectation) -> list[str]:
    """Return the columns whose combined values must be unique."""
    return list(expectation.kwargs.get("column_list") or [expectation.kwargs["column"]])


def is_compared_across_batches(expectation: Expectation, stage: Stage) -> bool:
    """Tell whether a batch must be compared with earlier batches.

    If the end of a window follows from its start, all its rows are in one batch. Then an expectation that includes
    a window bound needs no comparison with earlier batches.
    """
    return not (stage.window.has_fixed_bounds and WINDOW_BOUND_COLUMNS & {*unique_columns(expectation)})


def select_relevant_rows(expectation: Expectation, rows: "DataFrame") -> "DataFrame":
    """Return the rows that must be unique: rows that match the row condition and are not ignored for nulls."""
    columns = [quote_column(name) for name in unique_columns(expectation)]
    joiner = NULL_CONDITION_JOINERS[expectation.kwargs.get("ignore_row_if", "all_values_are_missing")]
    if joiner:
        rows = rows.where(f"NOT ({joiner.join(f'{column} IS NULL' for column in columns)})")
    return load_library().filter_relevant_rows(expectation, rows)


def find_repeated_rows(
    expectation: Expectation, rows: "DataFrame", earlier: "DataFrame | None"
) -> "DataFrame":
    """Return the rows that repeat another row of `rows`, or a row of `earlier`."""
    columns = [quote_column(name) for name in unique_columns(expectation)]
    same_rows_sql = f"count(1) OVER (PARTITION BY {', '.join(columns)}) AS {SAME_ROWS_COLUMN}"
    counted_rows = select_relevant_rows(expectation, rows).selectExpr("*", same_rows_sql)
    if earlier is None:
        return counted_rows.where(f"{SAME_ROWS_COLUMN} > 1").drop(SAME_ROWS_COLUMN)
    from pyspark.sql.functions import col, expr

    earlier_values = select_relevant_rows(expectation, earlier).selectExpr(*columns).distinct()
    seen_values = earlier_values.selectExpr("*", f"true AS {SEEN_BEFORE_COLUMN}").alias("s")
    is_same = expr(" AND ".join(f"r.{column} <=> s.{column}" for column in columns))
    repeated = (
        counted_rows.alias("r")
        .join(seen_values, is_same, "left")
        .where(f"{SAME_ROWS_COLUMN} > 1 OR {SEEN_BEFORE_COLUMN}")
    )
    return repeated.select(*(col(f"r.{quote_column(name)}") for name in rows.columns))


def recount_unexpected(
    result: ExpectationResult,
    expectation: Expectation,
    rows: "DataFrame",
    repeated: "DataFrame",
    identity_columns: list[str],
) -> ExpectationResult:
    """Return the result with `repeated` counted as unexpected rows, earlier batches included."""
    count = repeated.count()
    if count == (result.unexpected or 0):
        return result
    relevant_count = select_relevant_rows(expectation, rows).count()
    # Use the library's formula: 0.9 and 1 - 0.1 are different floating-point numbers.
    passed = (relevant_count - count) / relevant_count >= float(expectation.kwargs.get("mostly", 1))
    example_columns = [*dict.fromkeys([*identity_columns, *unique_columns(expectation)])]
    examples = tuple(
        to_json_value(row.asDict())
        for row in repeated.select(*map(quote_column, example_columns)).limit(MAX_REPEATED_EXAMPLES).collect()
    )
    return replace(result, passed=passed, unexpected=count, examples=examples)
