"""Compares a result table with the recomputed results."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isclose, isnan
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.quality.audit.verdict import AuditDifference

if TYPE_CHECKING:
    import polars as pl

RELATIVE_TOLERANCE = 1e-9
"""The relative tolerance for floating-point values, because sums depend on the order of addition."""


@dataclass(frozen=True)
class TableComparison:
    """A table, the columns that identify a row, and the columns that must be equal."""

    table: str
    identity: Sequence[str]
    values: Sequence[str]


def compare_results(
    comparison: TableComparison, actual: pa.Table, expected: pa.Table
) -> Iterator[AuditDifference]:
    """Yield the rows that differ, ordered by identity. Nulls are equal."""
    import polars as pl

    missing = [name for name in (*comparison.identity, *comparison.values) if name not in actual.column_names]
    if missing:
        yield AuditDifference(comparison.table, f"has no column {', '.join(missing)}")
        return
    yield from _find_repeated_rows(comparison, actual)
    actual_frame, expected_frame = (_frame(table, comparison) for table in (actual, expected))
    joined = actual_frame.with_columns(pl.lit(True).alias("_found")).join(
        expected_frame.with_columns(pl.lit(True).alias("_expected")),
        on=list(comparison.identity),
        how="full",
        coalesce=True,
        nulls_equal=True,
        suffix="_again",
    )
    is_different = [pl.col("_found").is_null(), pl.col("_expected").is_null()]
    is_different += [
        ~_is_same_expr(name, actual_frame.schema[name], expected_frame.schema[name])
        for name in comparison.values
    ]
    for row in (
        joined.filter(pl.any_horizontal(is_different)).sort(_sort_columns(comparison)).iter_rows(named=True)
    ):
        yield AuditDifference(
            f"{comparison.table}, {_row_label(comparison, row)}", _describe_row(comparison, row)
        )


def latest_panes(panes: pa.Table, identity: Sequence[str]) -> pa.Table:
    """Return the last row of each window in a pane log, unless it was retracted."""
    import polars as pl

    frame = pl.DataFrame(pl.from_arrow(panes)).with_columns(_rank=(pl.col("kind") == "insert").cast(pl.Int8))
    last_rows = frame.sort("batch_id", "_rank", maintain_order=True).unique(list(identity), keep="last")
    return last_rows.filter(pl.col("kind") == "insert").drop("_rank").to_arrow()


def _frame(table: pa.Table, comparison: TableComparison) -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame(pl.from_arrow(table.select([*comparison.identity, *comparison.values])))


def _is_same_expr(name: str, actual_type: "pl.DataType", expected_type: "pl.DataType") -> "pl.Expr":
    import polars as pl

    actual, recomputed = pl.col(name), pl.col(f"{name}_again")
    is_equal = actual.eq_missing(recomputed)
    if not (actual_type.is_float() and expected_type.is_float()):
        return is_equal
    is_near = (actual - recomputed).abs() <= RELATIVE_TOLERANCE * pl.max_horizontal(
        actual.abs(), recomputed.abs()
    )
    return is_equal | (is_near & actual.is_finite() & recomputed.is_finite()).fill_null(value=False)


def _find_repeated_rows(comparison: TableComparison, actual: pa.Table) -> Iterator[AuditDifference]:
    import polars as pl

    frame = _frame(actual, comparison)
    repeated = (
        frame.group_by(list(comparison.identity))
        .len("_rows")
        .filter(pl.col("_rows") > 1)
        .sort(_sort_columns(comparison))
    )
    for row in repeated.iter_rows(named=True):
        yield AuditDifference(
            f"{comparison.table}, {_row_label(comparison, row)}",
            f"the table has the row {row['_rows']} times",
        )


def _sort_columns(comparison: TableComparison) -> list[str]:
    """Order by time first, which is how people search a table."""
    return sorted(
        comparison.identity,
        key=lambda name: (not name.startswith("window_"), name.startswith("window_number")),
    )


def _row_label(comparison: TableComparison, row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_format_value(row[name])}" for name in comparison.identity)


def _describe_row(comparison: TableComparison, row: dict[str, Any]) -> str:
    if row["_found"] is None:
        return "missing from the table"
    if row["_expected"] is None:
        return "in the table, but not in the recomputed results"
    differing_columns = (name for name in comparison.values if _is_different(row[name], row[f"{name}_again"]))
    name = next(differing_columns, comparison.values[0])
    return f"{name} is {_format_value(row[name])}; recomputed, it is {_format_value(row[f'{name}_again'])}"


def _is_different(actual: object, expected: object) -> bool:
    if isinstance(actual, float) and isinstance(expected, float):
        return not (
            isclose(actual, expected, rel_tol=RELATIVE_TOLERANCE) or (isnan(actual) and isnan(expected))
        )
    return actual != expected


def _format_value(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    return repr(value) if isinstance(value, bytes) else str(value)
