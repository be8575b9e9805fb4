"""Looking into the warehouse's tables, for people: which there are, and their newest rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    address: str


def tables(warehouse: str) -> Iterator[Table]:
    """Every table of a warehouse in a folder; one in an object store is not listed."""
    for kind in KINDS:
        for log in sorted(Path(warehouse, kind).glob("*/_delta_log")):
            yield Table(kind, log.parent.name, str(log.parent))


def find_table(warehouse: str, name: str, kind: str | None) -> Table:
    """The table of that name; TableNotFoundError lists those that there are."""
    if "://" in warehouse:
        chosen = kind or KINDS[0]
        return Table(chosen, name, f"{warehouse.rstrip('/')}/{chosen}/{name}")
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

    frame = pl.scan_delta(table.address)
    columns = frame.collect_schema().names()
    order = [name for name in NEWEST_BY if name in columns]
    newest = frame.sort(order, descending=True) if order else frame
    return columns, newest.head(limit).collect().rows()
