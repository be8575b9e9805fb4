"""What is said to be unique, over all batches of a table: no row of a batch may repeat one of a batch before."""

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.pipelines.plan import Calendar, Fixed, Sliding, Stage
from penstock.pipelines.plan.predicates import quoted
from penstock.quality.expectations.library import library
from penstock.quality.expectations.outcome import Met, plain
from penstock.quality.expectations.suite import Expectation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNIQUE = ("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
SAME, BEFORE = "_rows_that_are_the_same", "_was_there_before"
SHOWN = 20
IGNORED = {"all_values_are_missing": " AND ", "any_value_is_missing": " OR ", "never": ""}
"""Between what a row is ignored: with the nulls of all columns, or of any; and never."""
BOUNDS = {"window_start", "window_end"}


def columns_of(one: Expectation) -> list[str]:
    """Return the columns whose values together are to be unique."""
    return list(one.kwargs.get("column_list") or [one.kwargs["column"]])


def crosses(one: Expectation, stage: Stage) -> bool:
    """Tell whether a batch must be compared with those before it.

    Windows whose end follows from their begin are all in one batch, so what has a window among its columns is
    compared as far as it must be.
    """
    return not (isinstance(stage.window, Fixed | Sliding | Calendar) and BOUNDS & {*columns_of(one)})


def meant(one: Expectation, rows: "DataFrame") -> "DataFrame":
    """Return the rows that are to be unique: what a condition leaves, without those that are ignored for nulls."""
    columns = [quoted(name) for name in columns_of(one)]
    ignored = IGNORED[one.kwargs.get("ignore_row_if", "all_values_are_missing")]
    if ignored:
        rows = rows.where(f"NOT ({ignored.join(f'{column} IS NULL' for column in columns)})")
    return library().chosen(one, rows)


def repeats(one: Expectation, rows: "DataFrame", earlier: "DataFrame | None") -> "DataFrame":
    """Return the rows that are not unique, among themselves or in rows that were there earlier."""
    columns = [quoted(name) for name in columns_of(one)]
    alike = f"count(1) OVER (PARTITION BY {', '.join(columns)}) AS {SAME}"
    counted = meant(one, rows).selectExpr("*", alike)
    if earlier is None:
        return counted.where(f"{SAME} > 1").drop(SAME)
    from pyspark.sql.functions import col, expr

    before = meant(one, earlier).selectExpr(*columns).distinct()
    seen = before.selectExpr("*", f"true AS {BEFORE}").alias("s")
    same = expr(" AND ".join(f"r.{column} <=> s.{column}" for column in columns))
    wrong = counted.alias("r").join(seen, same, "left").where(f"{SAME} > 1 OR {BEFORE}")
    return wrong.select(*(col(f"r.{quoted(name)}") for name in rows.columns))


def over_all(met: Met, one: Expectation, rows: "DataFrame", found: "DataFrame", index: list[str]) -> Met:
    """Return what came of an expectation about `rows` where `found` are not unique, earlier rows counted, too."""
    count = found.count()
    if count == (met.unexpected or 0):
        return met
    of = meant(one, rows).count()
    # In the library's own words, digit for digit: a share of nine in ten is not one less a tenth.
    passed = (of - count) / of >= float(one.kwargs.get("mostly", 1))
    shown = [*dict.fromkeys([*index, *columns_of(one)])]
    examples = tuple(plain(row.asDict()) for row in found.select(*map(quoted, shown)).limit(SHOWN).collect())
    return replace(met, passed=passed, unexpected=count, examples=examples)
