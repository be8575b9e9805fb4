"""Looking into the warehouse's tables, for people: which there are, and their newest rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.engine.storage import ObjectStorePath, StoragePath
from penstock.engine.storage.file_access import list_table_names, open_delta_table
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
"""The warehouse's folders, in the order in which a name is looked for."""

NEWEST_FIRST_COLUMNS = ("window_start", "batch_id", "offset")


@dataclass(frozen=True)
class WarehouseTable:
    """A Delta table of the warehouse."""

    kind: str
    name: str
    path: StoragePath

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return str(self.path)


def iter_tables(warehouse: StoragePath) -> Iterator[WarehouseTable]:
    """Every table of a warehouse."""
    for kind in TABLE_KINDS:
        for name in list_table_names(warehouse / kind):
            yield WarehouseTable(kind, name, warehouse / kind / name)


def find_table(warehouse: StoragePath, name: str, kind: str | None) -> WarehouseTable:
    """The table of that name; TableNotFoundError lists those that there are."""
    existing_tables = list(iter_tables(warehouse))
    for table in existing_tables:
        if table.name == name and kind in (None, table.kind):
            return table
    listed = ", ".join(f"{table.kind}/{table.name}" for table in existing_tables) or "none yet"
    raise TableNotFoundError(
        f"there is no table {name!r}{f' of kind {kind}' if kind else ''} in {warehouse}; there are: {listed}. "
        "A stream's first window makes its table: `penstock status` shows how far it is"
    )


def read_newest_rows(table: WarehouseTable, limit: int) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    """Column names, and the rows that are newest by window, batch or offset."""
    import polars as pl

    if isinstance(table.path, ObjectStorePath):
        # By the one library that everything else reads there with, and its way of finding keys.
        frame = pl.scan_pyarrow_dataset(open_delta_table(table.path).to_pyarrow_dataset())
    else:
        frame = pl.scan_delta(table.address)
    columns = frame.collect_schema().names()
    sort_columns = [name for name in NEWEST_FIRST_COLUMNS if name in columns]
    sorted_frame = frame.sort(sort_columns, descending=True) if sort_columns else frame
    return columns, sorted_frame.head(limit).collect().rows()
