"""Figures of a table per interval: volume, keys, null shares, and the fates of records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.engine.batch.accounts import RECORD_FATES
from penstock.quality.table_reads import to_milliseconds

if TYPE_CHECKING:
    import polars as pl


MIN_ROWS_FOR_SKETCH = 100_000
"""The number of rows from which on distinct values are counted by HyperLogLog, approximately."""


@dataclass(frozen=True)
class StatisticsPoint:
    """The figures of one interval, which starts at `at_ms`."""

    at_ms: int
    figures: Mapping[str, float]


def compute_window_points(
    rows: pa.Table,
    key: Sequence[str],
    values: Sequence[str],
    every_ms: int,
    final_ms: int | None,
    distinct: Sequence[str] = (),
) -> list[StatisticsPoint]:
    """Return the figures of a table of latest values by the end of its windows, oldest first.

    Includes only intervals in which every window is final. `rows` counts rows, `records` the records in them, and
    `keys` the distinct keys. `null_<column>` is the share of null values. `distinct_<column>` counts the distinct
    non-null values of each column in `distinct`, approximately in large tables.
    """
    import polars as pl

    if final_ms is None or not rows.num_rows:
        return []
    frame = _assign_intervals(rows, "window_end", every_ms).filter(pl.col("_at") + every_ms <= final_ms)
    figures = [pl.len().alias("rows"), pl.col("records").sum()]
    if key:
        figures.append(pl.struct(key).n_unique().alias("keys"))
    figures += [pl.col(name).is_null().mean().alias(f"null_{name}") for name in values]
    figures += [
        _count_distinct_expr(name, large=frame.height >= MIN_ROWS_FOR_SKETCH).alias(f"distinct_{name}")
        for name in distinct
    ]
    return _to_points(frame.group_by("_at").agg(figures))


def _count_distinct_expr(name: str, *, large: bool) -> "pl.Expr":
    import polars as pl

    non_null = pl.col(name).drop_nulls()
    # Count hashes: lists and structs have no sketch.
    return non_null.hash().approx_n_unique() if large else non_null.n_unique()


def compute_fate_points(ledger: pa.Table, every_ms: int, until_ms: int) -> list[StatisticsPoint]:
    """Return the number of records that a stream read and the share of each fate, by batch time."""
    import polars as pl

    if not ledger.num_rows:
        return []
    frame = _assign_intervals(ledger, "batch_clock", every_ms).filter(pl.col("_at") + every_ms <= until_ms)
    summed = frame.group_by("_at").agg(pl.col("read").sum(), *(pl.col(fate).sum() for fate in RECORD_FATES))
    shares = [
        (pl.col(fate) / pl.col("read")).fill_nan(0.0).alias(f"share_{fate}") for fate in RECORD_FATES[1:]
    ]
    return _to_points(summed.select("_at", "read", *shares))


def _assign_intervals(rows: pa.Table, time: str, every_ms: int) -> "pl.DataFrame":
    import polars as pl

    times = pl.Series("_at", to_milliseconds(rows.column(time)).to_pylist(), dtype=pl.Int64)
    frame = pl.DataFrame(pl.from_arrow(rows)).with_columns(times)
    # A window that ends on a boundary belongs to the interval before it.
    shift = 1 if time == "window_end" else 0
    return frame.filter(pl.col("_at").is_not_null()).with_columns(
        (pl.col("_at") - shift) // every_ms * every_ms
    )


def _to_points(frame: "pl.DataFrame") -> list[StatisticsPoint]:
    rows = frame.sort("_at").iter_rows(named=True)
    return [
        StatisticsPoint(row.pop("_at"), {name: float(value or 0) for name, value in row.items()})
        for row in rows
    ]
