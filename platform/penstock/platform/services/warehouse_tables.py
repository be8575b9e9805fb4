"""The warehouse's tables and their newest rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.names import explain_unknown_name
from penstock.engine.storage import ObjectStorePath, StoragePath
from penstock.engine.storage.file_access import list_children, list_table_names, open_delta_table
from penstock.platform.errors import TableNotFoundError

TABLE_KINDS = (
    "latest",
    "complete",
    "final",
    "panes",
    "late",
    "quarantine",
    "checks",
    "ledger",
    "lookups",
    "erasures",
    "raw",
)
"""The folders of Penstock in a warehouse, in the order in which a name is searched. Those of other sinks follow."""

NEWEST_FIRST_COLUMNS = ("window_start", "batch_id", "offset")


@dataclass(frozen=True)
class WarehouseTable:
    """A Delta table of the warehouse."""

    kind: str
    name: str
    path: StoragePath

    @property
    def address(self) -> str:
        """The path or URI of the table."""
        return str(self.path)


def iter_tables(warehouse: StoragePath) -> Iterator[WarehouseTable]:
    """Yield every table of a warehouse."""
    other_kinds = {folder.name for folder in list_children(warehouse)} - {*TABLE_KINDS}
    for kind in (*TABLE_KINDS, *sorted(other_kinds)):
        for name in list_table_names(warehouse / kind):
            yield WarehouseTable(kind, name, warehouse / kind / name)


def find_table(warehouse: StoragePath, name: str, kind: str | None) -> WarehouseTable:
    """Return the table of that name. Raises TableNotFoundError with the nearest match."""
    existing_tables = list(iter_tables(warehouse))
    for table in existing_tables:
        if table.name == name and kind in (None, table.kind):
            return table
    names = dict.fromkeys(table.name for table in existing_tables if kind in (None, table.kind))
    unknown_text = explain_unknown_name(
        f"{kind} table" if kind else "table", name, names, "penstock table list"
    )
    hint = "" if names else f" in {warehouse}: a stream creates its table with its first result"
    raise TableNotFoundError(f"{unknown_text}{hint}")


def read_newest_rows(table: WarehouseTable, limit: int) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    """Return the column names and the newest rows by window, batch or offset."""
    import polars as pl

    if isinstance(table.path, ObjectStorePath):
        # deltalake finds the credentials of the object store, as it does everywhere else.
        frame = pl.scan_pyarrow_dataset(open_delta_table(table.path).to_pyarrow_dataset())
    else:
        frame = pl.scan_delta(table.address)
    columns = frame.collect_schema().names()
    sort_columns = [name for name in NEWEST_FIRST_COLUMNS if name in columns]
    sorted_frame = frame.sort(sort_columns, descending=True) if sort_columns else frame
    return columns, sorted_frame.head(limit).collect().rows()
