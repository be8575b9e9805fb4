"""Kinds of damage to the tables of a stream.

The stream is that of `tests.pipelines.engine.batch.test_crashes`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.table_change import TableChange

LEDGER = "ledger/stream"


@dataclass(frozen=True)
class Damage:
    """How a warehouse is damaged, the check that finds it, and the start of its message."""

    apply: Callable[[Path], None]
    check: str
    message: str


def find_file(table: Path, name: str) -> Path:
    """Return the file that a batch wrote under a name; each attempt at a batch adds its own suffix."""
    (file,) = table.glob(f"{name}-*.parquet")
    return file


def _delete_a_file(warehouse: Path) -> None:
    min((warehouse / "latest/stream").glob("batch-000000000003-*.parquet")).unlink()


def _duplicate_a_file(warehouse: Path) -> None:
    path = warehouse / LEDGER
    rows = pq.read_table(find_file(path, "stream-000000000002"))
    other = LogTable(path, pa.schema(DeltaTable(path).schema().to_arrow()), "another writer")
    other.commit(0, TableChange([other.write_file(rows.cast(other.schema), "copy", 0)]), 0)


def _skip_an_offset(warehouse: Path) -> None:
    rows = pa.table(DeltaTable(warehouse / LEDGER).to_pyarrow_table())
    write_deltalake(
        warehouse / LEDGER, rows.filter(pc.not_equal(rows.column("batch_id"), 2)), mode="overwrite"
    )


def _edit_a_row(warehouse: Path) -> None:
    DeltaTable(warehouse / LEDGER).update(
        {"accepted": "accepted - 1"}, predicate="batch_id = 0 AND partition = 0"
    )


def _double_a_commit(warehouse: Path) -> None:
    path = warehouse / LEDGER
    ledger = LogTable(path, pa.schema(DeltaTable(path).schema().to_arrow()), "stream")
    rows = pq.read_table(find_file(path, "stream-000000000002")).cast(ledger.schema)
    ledger._commit(2, TableChange([ledger.write_file(rows, "again", 0)]), 0)


def _write_as_another_stream(warehouse: Path) -> None:
    path = warehouse / "latest/stream"
    other = LogTable(path, pa.schema(DeltaTable(path).schema().to_arrow()), "clash")
    rows = pa.table(DeltaTable(path).to_pyarrow_table()).slice(0, 1)
    other.commit(17, other.write(rows, 17, 0), 0)


def _lose_a_table(warehouse: Path) -> None:
    (warehouse / "late/stream").rename(warehouse / "late/moved")


DAMAGES = {
    "rows of another stream": Damage(
        _write_as_another_stream,
        "writers",
        "latest/stream: stream clash wrote it too, up to its batch 17 in version ",
    ),
    "a deleted file": Damage(_delete_a_file, "files", "latest/stream, file batch-000000000003-"),
    "a duplicated file": Damage(
        _duplicate_a_file, "offset ranges", "records/0 offset 2: the ledger has batch 2 more than once"
    ),
    "a skipped offset": Damage(
        _skip_an_offset, "offset ranges", "records/0 offset 2: no batch read offsets 2 to 2"
    ),
    "an edited row": Damage(
        _edit_a_row, "accounts", "records/0, batch 0: 2 records read of offsets 0 to 1, but 1 accepted"
    ),
    "a doubled commit": Damage(_double_a_commit, "files", "ledger/stream, version "),
    "a lost table": Damage(
        _lose_a_table, "files", "late/stream: table is missing, but stream has written up to batch 5"
    ),
}
