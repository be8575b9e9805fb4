"""A run: what one or several batches wrote of a state, in one immutable file.

Rows are sorted by group, so a lookup is a binary search in a mapped file and costs what it finds. A group's
rows in a younger run stand for all of that group's rows in older ones; a group that ended is one row marked
`dropped`. Beside the rows lie two indexes of when each is due, by event time and by the clock, so that what
is due between two moments is found without looking at the rest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.state.columns import (
    DROPPED,
    DUE_CLOCK,
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    NEVER,
    Hashes,
    Ints,
    Mask,
    hashes,
    integers,
    mask,
)

INDEXES = pa.schema(
    [
        pa.field("event_times", pa.int64(), nullable=False),
        pa.field("event_rows", pa.uint32(), nullable=False),
        pa.field("clock_times", pa.int64(), nullable=False),
        pa.field("clock_rows", pa.uint32(), nullable=False),
    ]
)


@dataclass(frozen=True)
class Groups:
    """Groups: two halves of a 128-bit hash each."""

    hi: Hashes
    lo: Hashes

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self.hi)

    def where(self, chosen: Mask | Ints) -> "Groups":
        """Some of the groups, in the same order."""
        return Groups(self.hi[chosen], self.lo[chosen])


@dataclass(frozen=True)
class Found:
    """Rows of a run that belong to groups looked for: `rows[i]` belongs to group `groups[i]`."""

    groups: Ints
    rows: Ints


class Run:
    """One run, mapped from its file. Opening it reads nothing of the rows."""

    def __init__(self, table: pa.Table, path: Path | None = None) -> None:
        self.path = path
        self._stored = table
        self._hi = hashes(table, GROUP_HI)
        self._lo = hashes(table, GROUP_LO)
        self._due = {
            DUE_EVENT: (integers(table, "event_times"), integers(table, "event_rows")),
            DUE_CLOCK: (integers(table, "clock_times"), integers(table, "clock_rows")),
        }

    def __len__(self) -> int:
        """How many rows the run holds, those of ended groups included."""
        return len(self._hi)

    @property
    def table(self) -> pa.Table:
        """The rows, without the indexes."""
        return self._stored.select([n for n in self._stored.column_names if n not in INDEXES.names])

    def fitted(self, schema: pa.Schema) -> "Run":
        """The same rows, with a list of one where a number stands and lists of such numbers are kept by now."""
        stored = self._stored
        for place, field in enumerate(stored.schema):
            wanted = schema.field(field.name).type if field.name in schema.names else field.type
            if wanted != field.type and wanted == pa.list_(field.type):
                stored = stored.set_column(place, field.name, _lists_of_one(stored.column(place)))
        return self if stored is self._stored else Run(stored, self.path)

    @property
    def groups(self) -> Groups:
        """The group of each row, in order."""
        return Groups(self._hi, self._lo)

    def find(self, wanted: Groups) -> Found:
        """All rows of the wanted groups, those of ended groups included."""
        first = np.searchsorted(self._hi, wanted.hi, side="left")
        # Most groups are in few runs: only where one begins is it asked where it ends.
        here = (
            np.flatnonzero(self._hi[np.minimum(first, len(self) - 1)] == wanted.hi)
            if len(self)
            else first[:0]
        )
        beyond = np.searchsorted(self._hi, wanted.hi[here], side="right")
        counts = np.maximum(beyond - first[here], 0)
        groups = np.repeat(here, counts)
        rows = _ranges(first[here], counts)
        same = self._lo[rows] == wanted.lo[groups]
        return Found(groups[same], rows[same])

    def due(self, column: str, after: int, until: int) -> Ints:
        """Rows whose due time in `column` lies in (after, until]; at the end of time all others too."""
        times, rows = self._due[column]
        begin, end = np.searchsorted(times, [after, until], side="right")
        found: Ints = rows[begin:end].astype(np.int64)
        return found[~self.dropped(found)] if until == NEVER else found

    def due_rows(self, column: str, after: int, until: int) -> int:
        """How many rows have a due time in (after, until], without looking at them."""
        begin, end = np.searchsorted(self._due[column][0], [after, until], side="right")
        return int(end - begin)

    def next_due(self, column: str, after: int) -> int:
        """The earliest due time after a moment; NEVER where there is none."""
        times, _ = self._due[column]
        at = int(np.searchsorted(times, after, side="right"))
        return int(times[at]) if at < len(times) else NEVER

    def take(self, rows: Ints) -> pa.Table:
        """The named rows, without the indexes."""
        return self.table.take(pa.array(rows)).combine_chunks()

    def dropped(self, rows: Ints) -> Mask:
        """Which of the named rows say that their group ended."""
        return np.asarray(self._stored.column(DROPPED).take(pa.array(rows)).to_numpy())


def build(table: pa.Table) -> pa.Table:
    """Sort rows by group and lay the indexes beside them: the content of a run."""
    order = np.lexsort((hashes(table, GROUP_LO), hashes(table, GROUP_HI)))
    table = table.take(pa.array(order)).combine_chunks()
    for name, column in (("event", DUE_EVENT), ("clock", DUE_CLOCK)):
        times = np.where(mask(table, DROPPED), NEVER, integers(table, column))
        rows = np.argsort(times, kind="stable")
        table = table.append_column(INDEXES.field(f"{name}_times"), pa.array(times[rows]))
        table = table.append_column(INDEXES.field(f"{name}_rows"), pa.array(rows.astype(np.uint32)))
    return table


def merge(runs: Sequence[Run], *, oldest: bool) -> pa.Table:
    """The rows that count of adjacent runs, given from old to young.

    Ended groups are forgotten only where nothing older could bring them back.
    """
    schema = runs[-1].table.schema
    tables = [run.fitted(schema).table for run in runs]
    table = pa.concat_tables(tables).combine_chunks()
    if not table.num_rows:
        return build(table)
    age = np.repeat(np.arange(len(runs), 0, -1), [t.num_rows for t in tables])
    hi, lo = hashes(table, GROUP_HI), hashes(table, GROUP_LO)
    order = np.lexsort((age, lo, hi))
    hi, lo, age = hi[order], lo[order], age[order]
    begins = np.append(True, (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1]))
    youngest = age[begins][np.cumsum(begins) - 1]
    kept = order[age == youngest]
    if oldest:
        kept = kept[~mask(table, DROPPED)[kept]]
    return build(table.take(pa.array(kept)))


def write(table: pa.Table, path: Path) -> None:
    """Put a run's content into a file, whole or not at all."""
    # A name of its own: a host that was taken over may still be writing the same run.
    partial = path.with_name(f"{path.stem}.{uuid4().hex[:8]}.partial")
    try:
        with pa.OSFile(str(partial), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        partial.replace(path)
    except Exception:
        partial.unlink(missing_ok=True)
        raise


def read(path: Path) -> Run:
    """Map a run's file."""
    with pa.memory_map(str(path)) as source:
        return Run(pa.ipc.open_file(source).read_all(), path)


def read_again(path: Path) -> Run:
    """Map a run's file, or give what was mapped before: what was looked at then need not be found again."""
    found = path.stat()
    return _mapped(path, found.st_ino, found.st_mtime_ns)


@lru_cache(maxsize=64)
def _mapped(path: Path, inode: int, changed: int) -> Run:
    """One of the files that were mapped last; a file that was written anew is another."""
    del inode, changed
    return read(path)


def _lists_of_one(column: pa.ChunkedArray) -> pa.Array:
    """What is not finite was never a sum of what is: it goes."""
    numbers = column.combine_chunks()
    told = pc.if_else(pc.is_finite(numbers), numbers, pa.scalar(0, numbers.type))
    return pa.ListArray.from_arrays(pa.array(np.arange(len(told) + 1), pa.int32()), told)


def _ranges(first: Ints, counts: Ints) -> Ints:
    """first[0], first[0]+1, … counts[0] times, then the same from first[1], and so on."""
    total = int(counts.sum())
    starts = np.repeat(first - np.concatenate(([0], np.cumsum(counts)[:-1])), counts) if total else first[:0]
    return starts + np.arange(total)
