"""The tables of the warehouse."""

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.core.names import explain_unknown_name
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import list_children, list_table_names
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
