"""Opens tables so that a statement sees one batch of each stream in all of them.

A table shows a batch whole or not at all. But the tables of a stream do not take a batch at the same moment. If
two tables of a statement end with different batches, the journal says whether the other one has rows in the newest
batch. If it has some that are not there yet, all tables of the stream are read as of the batch before.

Without the journal, as on another machine, each table is read at its newest batch.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from penstock.engine.storage import StoragePath
from penstock.engine.storage.arrow_delta_table import ArrowDeltaTable
from penstock.engine.storage.file_access import open_delta_table
from penstock.query.table_names import find_table_path
from penstock.query.table_versions import (
    AtBatch,
    VersionSelector,
    find_writer,
    load_version,
    parse_version_selector,
    read_batch,
)

ChangedTables: TypeAlias = Callable[[str, int], Collection[str] | None]
"""Returns the paths of the tables that a batch of a stream changes; None if that is not known."""
SELECTOR_SEPARATOR = "@"


def know_no_changes(_stream: str, _batch_id: int) -> None:
    """Return that the changes of a batch are not known."""


@dataclass(frozen=True)
class TableSnapshot:
    """A version of a table."""

    name: str
    path: str
    table: ArrowDeltaTable
    stream: str | None
    """The stream that writes it; None if it has several writers, or none."""
    is_newest: bool = True
    """Whether no batch and no time was asked for."""

    @property
    def batch_id(self) -> int | None:
        """The newest batch in it; None if it has no single writer."""
        return None if self.stream is None else read_batch(self.table, self.stream)

    def describe(self) -> str:
        """Describe the table and its batch, for the end of an answer."""
        if self.batch_id is None:
            return f"{self.name} at version {self.table.version()}"
        return f"{self.name} at batch {self.batch_id}"


def open_snapshot(warehouse: StoragePath, name: str, selector: VersionSelector = None) -> TableSnapshot:
    """Open a table by name. `name@12` and `name@2026-01-31T12:00` select a batch and a time."""
    base_name, separator, selector_text = name.partition(SELECTOR_SEPARATOR)
    if separator:
        selector = parse_version_selector(selector_text)
    path = find_table_path(warehouse, base_name)
    table = open_delta_table(warehouse / path)
    stream = find_writer(table, warehouse / path)
    load_version(table, base_name, stream, selector)
    return TableSnapshot(name, path, table, stream, is_newest=selector is None)


def align_snapshots(snapshots: Sequence[TableSnapshot], find_changes: ChangedTables) -> None:
    """Load older versions where a batch is not yet in all tables of its stream."""
    by_stream: dict[str, list[TableSnapshot]] = {}
    for snapshot in snapshots:
        if snapshot.stream is not None and snapshot.is_newest:
            by_stream.setdefault(snapshot.stream, []).append(snapshot)
    for stream, tables in by_stream.items():
        batches = {each.path: read_batch(each.table, stream) for each in tables}
        newest = max(batches.values())
        if _is_incomplete(batches, newest, stream, find_changes):
            for each in tables:
                load_version(each.table, each.name, stream, AtBatch(newest - 1))


def _is_incomplete(batches: Mapping[str, int], newest: int, stream: str, find_changes: ChangedTables) -> bool:
    """Whether a table lacks rows of the newest batch. All earlier batches are complete: they are sequential."""
    if min(batches.values()) == newest:
        return False
    changed_paths = find_changes(stream, newest) or ()
    return any(batch < newest and path in changed_paths for path, batch in batches.items())
