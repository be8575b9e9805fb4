"""The tables of a stream, read as they were after a batch; and whether a table is whole."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from penstock.pipelines.store import Place
from penstock.pipelines.store.files import LOG, delta_table, read_all, size_of
from penstock.quality.audit.verdict import Difference
from penstock.quality.errors import DamagedTableError, NoTableError

COMMIT = re.compile(r"\d{20}\.json")


@dataclass(frozen=True)
class Due:
    """What a table must have: the columns that the audit goes by, and the last batch that its writer decided."""

    columns: Collection[str] = ()
    writer: str = ""
    batch: int = -1


def wholeness(path: Place, table: str, due: Due = Due()) -> Iterator[Difference]:
    """Yield the files that a table names that are not there as it says, and batches that came in twice or never.

    A table that is not there has none; one that cannot be opened, or has other columns, is a difference itself.
    """
    try:
        opened = opened_table(path)
    except DamagedTableError as problem:
        yield Difference(table, f"it {problem.found}")
        return
    if opened is None:
        return
    if found := lacking(opened, due.columns):
        yield Difference(table, f"it {found}")
        return
    for row in pa.table(opened.get_add_actions(flatten=True)).select(["path", "size_bytes"]).to_pylist():
        size = size_of(path / row["path"])
        if size is None:
            yield Difference(f"{table}, file {row['path']}", "the table names it, and it is not there")
        elif size != row["size_bytes"]:
            yield Difference(
                f"{table}, file {row['path']}",
                f"it has {size} bytes, and was brought in with {row['size_bytes']}",
            )
    yield from _committed_twice(path, table)
    newest = opened.transaction_version(due.writer)
    if due.batch > (-1 if newest is None else newest):
        had = f"its newest is {newest}" if newest is not None else "it has none of its batches"
        yield Difference(table, f"{due.writer} wrote to it in batch {due.batch}, and {had}")


def lacking(table: DeltaTable, columns: Iterable[str]) -> str:
    """Say which of some columns a table lacks; nothing where it has them all."""
    missing = sorted({*columns} - {field.name for field in table.schema().fields})
    named = ", ".join(missing)
    return f"has no column {named}: it is not what its stream made there" if missing else ""


def rows(
    path: Place, upto: int, columns: Sequence[str] | None = None, stream: str | None = None
) -> pa.Table | None:
    """Return the rows of batches up to `upto`, of one stream where several write; None where there is no table.

    With `columns` those and the batch, else all. DamagedTableError where a column is not there, or a file of the
    table cannot be read.
    """
    table = opened_table(path)
    if table is None:
        return None
    wanted = None if columns is None else sorted({"batch_id", *columns})
    if found_lacking := lacking(table, [*(wanted or ["batch_id"]), *(["stream"] if stream else [])]):
        raise DamagedTableError(path, found_lacking)
    found = read(table, path, wanted)
    # Filtered here, not by the library: a file without statistics of a column has no rows for it.
    found = found.filter(pc.less_equal(found.column("batch_id"), upto))
    return found if stream is None else found.filter(pc.equal(found.column("stream"), stream))


def needed(path: Place, upto: int, columns: Sequence[str] | None = None) -> pa.Table:
    """Return the same of a table that must be there. NoTableError where it is not."""
    return there(path, rows(path, upto, columns))


def there(path: Place, found: pa.Table | None) -> pa.Table:
    """Return what was found of a table. NoTableError where that is nothing."""
    if found is None:
        raise NoTableError(f"there is no table at {path}: a stream makes its tables when it starts")
    return found


def as_of(path: Place, application: str, upto: int) -> pa.Table | None:
    """Return a table of newest values as it stood after a batch of its writer; None where there is none."""
    table = opened_table(path)
    if table is None:
        return None
    version = table.version()
    while version > 0 and (table.transaction_version(application) or 0) > upto:
        version -= 1
        table.load_as_version(version)
    return read(table, path, None)


def opened_table(path: Place) -> DeltaTable | None:
    """Return a table; None where nothing was ever written."""
    try:
        return delta_table(path)
    except TableNotFoundError:
        return None
    except DeltaError as problem:
        why = _log_lacks(path) or str(problem).splitlines()[0]
        raise DamagedTableError(path, f"cannot be opened: {why}") from problem


def _log_lacks(path: Place) -> str:
    """Say which version a table's log lacks after what sums it up; nothing where it is another thing."""
    names = sorted(each.name for each in (path / LOG).iterdir())
    commits = [int(name.partition(".")[0]) for name in names if COMMIT.fullmatch(name)]
    sums = [int(name.partition(".")[0]) for name in names if ".checkpoint." in name and name[:20].isdecimal()]
    begins = max(sums, default=-1) + 1
    expected = range(begins, max(commits, default=begins - 1) + 1)
    missing = next((version for version in expected if version not in set(commits)), None)
    return "" if missing is None else f"version {missing} is not in its log"


def read(table: DeltaTable, path: Place, columns: Sequence[str] | None) -> pa.Table:
    """Return the rows of a table as it was opened. DamagedTableError where a file cannot be read."""
    try:
        return pa.table(table.to_pyarrow_table(columns=None if columns is None else list(columns)))
    except (DeltaError, OSError, pa.ArrowException) as problem:
        raise DamagedTableError(path, f"cannot be read: {str(problem).splitlines()[0]}") from problem


def _committed_twice(path: Place, table: str) -> Iterator[Difference]:
    """Yield batches that two commits brought in: each carries the batch of its writer, and these only rise."""
    newest: dict[str, tuple[int, int]] = {}
    logs = sorted((p for p in (path / LOG).iterdir() if COMMIT.fullmatch(p.name)), key=lambda p: p.name)
    for log, content in zip(logs, read_all(logs), strict=True):
        version = int(log.name.partition(".")[0])
        try:
            actions = [json.loads(line) for line in content.decode().splitlines() if '"txn"' in line]
        except ValueError as problem:
            yield Difference(f"{table}, version {version}", f"what its log says cannot be read: {problem}")
            continue
        for action in actions:
            if "txn" in action:
                application, batch = action["txn"]["appId"], action["txn"]["version"]
                before = newest.get(application)
                if before is not None and batch <= before[1]:
                    yield Difference(
                        f"{table}, version {version}",
                        f"it brings in batch {batch} of {application}, and version {before[0]} batch {before[1]}",
                    )
                newest[application] = (version, batch)


def milliseconds(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return times of a table as milliseconds."""
    return pc.cast(pc.cast(column, pa.timestamp("ms", tz="UTC"), safe=False), pa.int64())
