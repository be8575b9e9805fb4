"""The newest rows of a table, as a person wants to see them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.core.names import explain_unknown_name
from penstock.engine.storage import ObjectStorePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.platform.errors import TableQueryError
from penstock.platform.services.warehouse_tables import WarehouseTable

if TYPE_CHECKING:
    import polars as pl

_RESULT_COLUMNS = ("pane", "on_time_index", "records", "batch_id", "batch_clock", "watermark")
INTERNAL_COLUMNS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("latest", "complete", "final", "panes"), _RESULT_COLUMNS),
    "late": ("watermark", "batch_id", "batch_clock"),
    "quarantine": ("contract", "batch_id", "batch_clock"),
    "checks": ("batch_id", "batch_clock"),
    "raw": ("timestamp_type", "day", "batch_id"),
}
"""Columns that say how a row came about and not what it is, by folder. Folders of other sinks have none."""

_UNKNOWN_COLUMN_PATTERN = re.compile(r'column "([^"]*)"')
NEWEST_FIRST_COLUMNS = ("window_start", "batch_id", "offset")
ONE_ROW_PER_WINDOW = ("latest", "complete", "final")
"""Tables whose rows of a window are in the order of their keys, whichever batch wrote them."""


@dataclass(frozen=True)
class RowQuery:
    """Which rows and columns of a table to read. Without `columns`, internal ones are left out."""

    limit: int
    columns: tuple[str, ...] = ()
    all_columns: bool = False
    where: str = ""
    future_first: bool = False
    """Windows that start in the future come first; otherwise they come last."""


@dataclass(frozen=True)
class TableRows:
    """The rows that were read, and the columns that were left out."""

    columns: Sequence[str]
    rows: Sequence[tuple[Any, ...]]
    left_out: Sequence[str]


def read_rows(table: WarehouseTable, query: RowQuery, now_ms: int) -> TableRows:
    """Return the newest rows by window, batch or offset. Raises TableQueryError for an unknown column."""
    frame = _scan(table)
    names = frame.collect_schema().names()
    columns = _select_columns(table, names, query)
    frame = _filter(frame, query.where, names) if query.where else frame
    rows = _sort(frame, table.kind, names, query, now_ms).head(query.limit).select(columns).collect().rows()
    return TableRows(columns, rows, [name for name in names if name not in columns])


def _scan(table: WarehouseTable) -> "pl.LazyFrame":
    import polars as pl

    if isinstance(table.path, ObjectStorePath):
        # deltalake finds the credentials of the object store, as it does everywhere else.
        return pl.scan_pyarrow_dataset(open_delta_table(table.path).to_pyarrow_dataset())
    return pl.scan_delta(table.address)


def _select_columns(table: WarehouseTable, names: Sequence[str], query: RowQuery) -> Sequence[str]:
    for name in query.columns:
        if name not in names:
            raise TableQueryError(explain_unknown_name("column", name, names))
    internal = () if query.all_columns else INTERNAL_COLUMNS.get(table.kind, ())
    return query.columns or [name for name in names if name not in internal]


def _filter(frame: "pl.LazyFrame", condition: str, names: Sequence[str]) -> "pl.LazyFrame":
    """Filter by a condition in SQL. An empty table tells whether it is valid, before any file is read."""
    import polars as pl

    try:
        _where(pl.DataFrame(schema=frame.collect_schema()).lazy(), condition).collect()
    except pl.exceptions.ColumnNotFoundError as error:
        raise TableQueryError(explain_unknown_name("column", _find_column_name(error), names)) from None
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise TableQueryError(
            f"--where {condition!r} is not a condition in SQL on this table ({reason}). "
            "Write for example: --where \"device = 'a' AND temperature > 20\""
        ) from None
    return _where(frame, condition)


def _where(frame: "pl.LazyFrame", condition: str) -> "pl.LazyFrame":
    import polars as pl

    # The user's own condition, on a table that is only read.
    return pl.SQLContext(shown=frame).execute(f"SELECT * FROM shown WHERE ({condition})")  # noqa: S608


def _find_column_name(error: Exception) -> str:
    """Return the name in an error of polars: `unable to find column "x"; valid columns: …`."""
    match = _UNKNOWN_COLUMN_PATTERN.search(str(error))
    return match.group(1) if match else str(error).partition("\n")[0]


def _sort(
    frame: "pl.LazyFrame", kind: str, names: Sequence[str], query: RowQuery, now_ms: int
) -> "pl.LazyFrame":
    import polars as pl

    newest = [name for name in NEWEST_FIRST_COLUMNS if name in names]
    keys = [pl.col(name) for name in newest]
    descending = [True] * len(newest)
    if kind in ONE_ROW_PER_WINDOW and "window_start" in newest:
        keys, descending = [pl.col("window_start"), pl.col(names[0])], [True, False]
    if "window_start" in newest and not query.future_first:
        starts_later = pl.col("window_start") > pl.lit(datetime.fromtimestamp(now_ms / 1000, UTC))
        keys, descending = [starts_later, *keys], [False, *descending]
    return frame.sort(keys, descending=descending) if keys else frame
