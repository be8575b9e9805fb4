"""A table of latest values equals a dictionary of windows at each version, and a batch rewrites few files."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables.file_maintenance import FileMergeCounts, merge_small_files
from penstock.engine.tables.latest_table import LatestTable
from penstock.engine.tables.timestamps import TIMESTAMP_TYPE

SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("window_start", TIMESTAMP_TYPE),
        ("window_end", TIMESTAMP_TYPE),
        ("n", pa.int64()),
    ]
)
PANES = pa.schema([*SCHEMA, pa.field("kind", pa.string())])
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = 3_600_000_000

Window = tuple[str | None, int | None, int | None]
Batch = dict[Window, int | None]
"""The newest value of each window that a batch touches; None where it is taken back."""


def at(minute: int | None) -> datetime | None:
    return None if minute is None else NOON + timedelta(minutes=minute)


def panes(batch: Batch) -> pa.Table:
    rows = [
        {"key": key, "window_start": at(start), "window_end": at(end), "n": n or 0, "kind": kind}
        for (key, start, end), n in batch.items()
        for kind in (["retract", "insert"] if n is not None else ["retract"])
    ]
    return pa.Table.from_pylist(rows, schema=PANES)


def table(folder: Path, span: int | None = HOUR, piece: int = 8) -> LatestTable:
    return LatestTable(folder / "latest", SCHEMA, "s", ["key"], span, piece)


def write(latest: LatestTable, batches: Iterable[Batch]) -> None:
    for batch in batches:
        number = latest.read_last_batch() + 1
        latest.commit(number, latest.write(panes(batch), number, number), number)


def rows(latest: LatestTable) -> list[tuple[object, ...]]:
    found = open_delta_table(latest.path).to_pyarrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in found), key=str)


def expected(batches: Iterable[Batch]) -> list[tuple[object, ...]]:
    newest: Batch = {}
    for batch in batches:
        newest |= batch
    standing = ((*window, n) for window, n in newest.items() if n is not None)
    return sorted(((key, at(start), at(end), n) for key, start, end, n in standing), key=str)


KEYS = st.none() | st.sampled_from("abcdefghijklmnopqrstuvwxyz") | st.just("x" * 100)
"""With none, and with one that is too long to be a bound in a file's statistics."""
VALUES = st.none() | st.integers(0, 9)


def some(windows: st.SearchStrategy[Window]) -> st.SearchStrategy[list[Batch]]:
    return st.lists(st.dictionaries(windows, VALUES, max_size=20), max_size=8)


HOURS = st.integers(0, 2).map(lambda hour: (hour * 60, hour * 60 + 60))
SESSIONS = st.tuples(st.integers(0, 150), st.integers(1, 90)).map(lambda s: (s[0], s[0] + s[1]))
GLOBAL = st.just((None, None))


@pytest.mark.parametrize(("bounds", "span"), [(HOURS, HOUR), (SESSIONS, HOUR), (GLOBAL, None)])
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_the_table_has_the_latest_value_of_each_window(
    bounds: st.SearchStrategy[tuple[int | None, int | None]], span: int | None, data: st.DataObject
) -> None:
    windows = st.tuples(KEYS, bounds).map(lambda told: (told[0], *told[1]))
    batches = data.draw(some(windows))
    with TemporaryDirectory() as folder:
        latest = table(Path(folder), span)
        for number, batch in enumerate(batches):
            write(latest, [batch])
            assert rows(latest) == expected(batches[: number + 1])


def everybody(total: int) -> Batch:
    return {(f"k{key:04}", 0, 60): 0 for key in range(total)}


def test_a_window_of_many_keys_is_split_by_key_range_and_a_batch_rewrites_only_changed_files(
    tmp_path: Path,
) -> None:
    latest = table(tmp_path)
    write(latest, [everybody(80)])
    assert len(open_delta_table(latest.path).file_uris()) == 10
    change = latest.write(panes({("k0003", 0, 60): 1, ("k0075", 0, 60): 1}), 1, 1)
    assert (len(change.removes), len(change.adds), sum(file.rows for file in change.adds)) == (2, 2, 16)


def test_new_sessions_do_not_rewrite_files_of_older_ones(tmp_path: Path) -> None:
    latest = table(tmp_path)
    write(latest, [{("k", minute, minute + 2): 0 for minute in range(60)}])
    change = latest.write(panes({("k", 59, 61): 1, ("k", 58, 60): None}), 1, 1)
    assert (len(change.removes), sum(file.rows for file in change.adds)) == (1, 8)


@pytest.mark.parametrize("kind", ["keys", "sessions"])
def test_new_windows_in_each_batch_leave_few_files(tmp_path: Path, kind: str) -> None:
    latest = table(tmp_path)
    names = [(f"k{n:04}", 0, 60) if kind == "keys" else ("k", n, 70) for n in range(60)]
    batches: list[Batch] = [{name: 0} for name in names]
    write(latest, batches)
    assert rows(latest) == expected(batches)
    assert len(open_delta_table(latest.path).file_uris()) <= 8


def test_files_of_closed_windows_can_be_merged_beside_an_overlapping_open_window(
    tmp_path: Path,
) -> None:
    latest = table(tmp_path, piece=1)
    batches: list[Batch] = [{("k", minute, minute + 1): 0} for minute in range(10)]
    write(latest, batches)
    batches.append({("long", 5, 50): 1})
    decided = latest.write(panes(batches[-1]), 10, 10)
    assert merge_small_files(latest.path, "s", 0, at(20)) == FileMergeCounts(10, 1)
    latest.commit(10, decided, 10)
    assert rows(latest) == expected(batches)
