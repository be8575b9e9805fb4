"""Whether the values of a table are those that its records give when they are computed again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isclose, isnan
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.quality.audit.verdict import Difference

if TYPE_CHECKING:
    import polars as pl

TOLERANCE = 1e-9
"""By how much of its size a floating number may differ: last digits of a sum depend on the order of addition."""


@dataclass(frozen=True)
class Compared:
    """A table by its name, the columns that name a row, and those that must be the same."""

    table: str
    identity: Sequence[str]
    values: Sequence[str]


def results(of: Compared, found: pa.Table, expected: pa.Table) -> Iterator[Difference]:
    """Yield the rows that are not the same, in the order of their identity; nulls are equal to nulls."""
    import polars as pl

    missing = [name for name in (*of.identity, *of.values) if name not in found.column_names]
    if missing:
        yield Difference(of.table, f"it has no column {', '.join(missing)}, which its records give")
        return
    yield from _repeated(of, found)
    ours, theirs = (_frame(table, of) for table in (found, expected))
    joined = ours.with_columns(pl.lit(True).alias("_found")).join(
        theirs.with_columns(pl.lit(True).alias("_expected")),
        on=list(of.identity),
        how="full",
        coalesce=True,
        nulls_equal=True,
        suffix="_again",
    )
    wrong = [pl.col("_found").is_null(), pl.col("_expected").is_null()]
    wrong += [~_same(name, ours.schema[name], theirs.schema[name]) for name in of.values]
    for row in joined.filter(pl.any_horizontal(wrong)).sort(_order(of)).iter_rows(named=True):
        yield Difference(f"{of.table}, {_named(of, row)}", _said(of, row))


def newest(panes: pa.Table, identity: Sequence[str]) -> pa.Table:
    """Return what stands of a log of panes: for each window the last row, unless that took the window back."""
    import polars as pl

    frame = pl.DataFrame(pl.from_arrow(panes)).with_columns(_rank=(pl.col("kind") == "insert").cast(pl.Int8))
    last = frame.sort("batch_id", "_rank", maintain_order=True).unique(list(identity), keep="last")
    return last.filter(pl.col("kind") == "insert").drop("_rank").to_arrow()


def _frame(table: pa.Table, of: Compared) -> "pl.DataFrame":
    import polars as pl

    return pl.DataFrame(pl.from_arrow(table.select([*of.identity, *of.values])))


def _same(name: str, ours: "pl.DataType", theirs: "pl.DataType") -> "pl.Expr":
    import polars as pl

    one, other = pl.col(name), pl.col(f"{name}_again")
    equal = one.eq_missing(other)
    if not (ours.is_float() and theirs.is_float()):
        return equal
    near = (one - other).abs() <= TOLERANCE * pl.max_horizontal(one.abs(), other.abs())
    return equal | (near & one.is_finite() & other.is_finite()).fill_null(value=False)


def _repeated(of: Compared, found: pa.Table) -> Iterator[Difference]:
    import polars as pl

    frame = _frame(found, of)
    again = frame.group_by(list(of.identity)).len("_rows").filter(pl.col("_rows") > 1).sort(_order(of))
    for row in again.iter_rows(named=True):
        yield Difference(f"{of.table}, {_named(of, row)}", f"it is in the table {row['_rows']} times")


def _order(of: Compared) -> list[str]:
    """By time first, for that is how a person looks for a place."""
    return sorted(
        of.identity, key=lambda name: (not name.startswith("window_"), name.startswith("window_number"))
    )


def _named(of: Compared, row: dict[str, Any]) -> str:
    return ", ".join(f"{name} {_shown(row[name])}" for name in of.identity)


def _said(of: Compared, row: dict[str, Any]) -> str:
    if row["_found"] is None:
        return "its records give it, and the table does not have it"
    if row["_expected"] is None:
        return "the table has it, and its records do not give it"
    differing = (name for name in of.values if _apart(row[name], row[f"{name}_again"]))
    name = next(differing, of.values[0])
    return f"{name} is {_shown(row[name])}, and its records give {_shown(row[f'{name}_again'])}"


def _apart(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return not (isclose(one, other, rel_tol=TOLERANCE) or (isnan(one) and isnan(other)))
    return one != other


def _shown(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
    return repr(value) if isinstance(value, bytes) else str(value)
