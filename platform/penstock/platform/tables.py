"""Looking into the warehouse's tables, for people: which there are, and their newest rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.pipelines.store import Address, Place
from penstock.pipelines.store.files import delta_table, tables_in
from penstock.platform.errors import TableNotFoundError

KINDS = (
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

NEWEST_BY = ("window_start", "batch_id", "offset")


@dataclass(frozen=True)
class Table:
    """A Delta table of the warehouse."""

    kind: str
    name: str
    place: Place

    @property
    def address(self) -> str:
        """Where it is, for people."""
        return str(self.place)


def tables(warehouse: Place) -> Iterator[Table]:
    """Every table of a warehouse."""
    for kind in KINDS:
        for name in tables_in(warehouse / kind):
            yield Table(kind, name, warehouse / kind / name)


def find_table(warehouse: Place, name: str, kind: str | None) -> Table:
    """The table of that name; TableNotFoundError lists those that there are."""
    known = list(tables(warehouse))
    for table in known:
        if table.name == name and kind in (None, table.kind):
            return table
    listed = ", ".join(f"{table.kind}/{table.name}" for table in known) or "none yet"
    raise TableNotFoundError(
        f"there is no table {name!r}{f' of kind {kind}' if kind else ''} in {warehouse}; there are: {listed}. "
        "A stream's first window makes its table: `penstock status` shows how far it is"
    )


def newest_rows(table: Table, limit: int) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    """Column names, and the rows that are newest by window, batch or offset."""
    import polars as pl

    if isinstance(table.place, Address):
        # By the one library that everything else reads there with, and its way of finding keys.
        frame = pl.scan_pyarrow_dataset(delta_table(table.place).to_pyarrow_dataset())
    else:
        frame = pl.scan_delta(table.address)
    columns = frame.collect_schema().names()
    order = [name for name in NEWEST_BY if name in columns]
    newest = frame.sort(order, descending=True) if order else frame
    return columns, newest.head(limit).collect().rows()
