"""What is said to be unique, over all batches of a table: no row of a batch may repeat one of a batch before."""

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.pipelines.plan import Calendar, Fixed, Sliding, Stage
from penstock.pipelines.plan.predicates import quoted
from penstock.quality.expectations.outcome import Met, plain
from penstock.quality.expectations.suite import Expectation

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

UNIQUE = ("expect_column_values_to_be_unique", "expect_compound_columns_to_be_unique")
SAME, BEFORE = "_rows_that_are_the_same", "_was_there_before"
SHOWN = 20
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


def repeats(one: Expectation, rows: "DataFrame", earlier: "DataFrame | None") -> "DataFrame":
    """Return the rows that are not unique, among themselves or in rows that were there earlier."""
    columns = [quoted(name) for name in columns_of(one)]
    there = " OR ".join(f"{column} IS NOT NULL" for column in columns)
    counted = rows.selectExpr("*", f"count(1) OVER (PARTITION BY {', '.join(columns)}) AS {SAME}")
    if earlier is None:
        return counted.where(f"{SAME} > 1 AND ({there})").drop(SAME)
    from pyspark.sql.functions import col, expr

    seen = earlier.selectExpr(*columns).distinct().selectExpr("*", f"true AS {BEFORE}").alias("s")
    same = expr(" AND ".join(f"r.{column} <=> s.{column}" for column in columns))
    joined = counted.alias("r").join(seen, same, "left")
    wrong = joined.where(
        f"({SAME} > 1 OR {BEFORE}) AND ({' OR '.join(f'r.{c} IS NOT NULL' for c in columns)})"
    )
    return wrong.select(*(col(f"r.{quoted(name)}") for name in rows.columns))


def over_all(met: Met, one: Expectation, found: "DataFrame", index: list[str]) -> Met:
    """Return what came of an expectation where rows that were there earlier count, too."""
    count = found.count()
    allowed = (1 - float(one.kwargs.get("mostly", 1))) * (met.checked or 0)
    if count == (met.unexpected or 0):
        return met
    shown = [*dict.fromkeys([*index, *columns_of(one)])]
    examples = tuple(plain(row.asDict()) for row in found.select(*map(quoted, shown)).limit(SHOWN).collect())
    return replace(met, passed=count <= allowed, unexpected=count, examples=examples)
