"""Figures of a table, stretch by stretch: volume, keys, shares of nulls; and what became of its records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.quality.audit.chain import FATES
from penstock.quality.audit.tables import milliseconds

if TYPE_CHECKING:
    import polars as pl


LARGE = 100_000
"""Rows from which on different values are counted by a sketch, a HyperLogLog: it is near, and costs no memory."""


@dataclass(frozen=True)
class Point:
    """The figures of one stretch of time, which begins at `at_ms`."""

    at_ms: int
    figures: Mapping[str, float]


def of_windows(
    rows: pa.Table,
    key: Sequence[str],
    values: Sequence[str],
    every_ms: int,
    final_ms: int | None,
    distinct: Sequence[str] = (),
) -> list[Point]:
    """Return the figures of a table of newest values, by the time at which windows end, old ones first.

    Only stretches are told in which every window is final. `rows` counts windows of keys, `records` what came for
    them, `keys` how many different keys there were, `null_<column>` the share of windows without a value. Of each
    column in `distinct`, `distinct_<column>` counts its different values, nulls apart: in large tables nearly.
    """
    import polars as pl

    if final_ms is None or not rows.num_rows:
        return []
    frame = _stretched(rows, "window_end", every_ms).filter(pl.col("_at") + every_ms <= final_ms)
    figures = [pl.len().alias("rows"), pl.col("records").sum()]
    if key:
        figures.append(pl.struct(key).n_unique().alias("keys"))
    figures += [pl.col(name).is_null().mean().alias(f"null_{name}") for name in values]
    figures += [_different(name, large=frame.height >= LARGE).alias(f"distinct_{name}") for name in distinct]
    return _points(frame.group_by("_at").agg(figures))


def _different(name: str, *, large: bool) -> "pl.Expr":
    import polars as pl

    there = pl.col(name).drop_nulls()
    # By their hashes, for a list or a struct has no sketch of its own.
    return there.hash().approx_n_unique() if large else there.n_unique()


def of_fates(ledger: pa.Table, every_ms: int, until_ms: int) -> list[Point]:
    """Return how many records a stream read, and the share of each fate, by the clock of their batches."""
    import polars as pl

    if not ledger.num_rows:
        return []
    frame = _stretched(ledger, "batch_clock", every_ms).filter(pl.col("_at") + every_ms <= until_ms)
    summed = frame.group_by("_at").agg(pl.col("read").sum(), *(pl.col(fate).sum() for fate in FATES))
    shares = [(pl.col(fate) / pl.col("read")).fill_nan(0.0).alias(f"share_{fate}") for fate in FATES[1:]]
    return _points(summed.select("_at", "read", *shares))


def _stretched(rows: pa.Table, time: str, every_ms: int) -> "pl.DataFrame":
    import polars as pl

    at = pl.Series("_at", milliseconds(rows.column(time)).to_pylist(), dtype=pl.Int64)
    frame = pl.DataFrame(pl.from_arrow(rows)).with_columns(at)
    # A window that ends with a stretch belongs to it.
    shift = 1 if time == "window_end" else 0
    return frame.filter(pl.col("_at").is_not_null()).with_columns(
        (pl.col("_at") - shift) // every_ms * every_ms
    )


def _points(frame: "pl.DataFrame") -> list[Point]:
    rows = frame.sort("_at").iter_rows(named=True)
    return [Point(row.pop("_at"), {name: float(value or 0) for name, value in row.items()}) for row in rows]
