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
"""The newest value of each window that a batch touches; None where it is retracted."""


def to_time(minute: int | None) -> datetime | None:
    return None if minute is None else NOON + timedelta(minutes=minute)


def make_panes(batch: Batch) -> pa.Table:
    rows = [
        {"key": key, "window_start": to_time(start), "window_end": to_time(end), "n": n or 0, "kind": kind}
        for (key, start, end), n in batch.items()
        for kind in (["retract", "insert"] if n is not None else ["retract"])
    ]
    return pa.Table.from_pylist(rows, schema=PANES)


def make_table(folder: Path, span: int | None = HOUR, rows_per_file: int = 8) -> LatestTable:
    return LatestTable(folder / "latest", SCHEMA, "s", ["key"], span, rows_per_file)


def write_batches(latest: LatestTable, batches: Iterable[Batch]) -> None:
    for batch in batches:
        number = latest.read_last_batch() + 1
        latest.commit(number, latest.write(make_panes(batch), number, number), number)


def read_rows(latest: LatestTable) -> list[tuple[object, ...]]:
    rows = open_delta_table(latest.path).to_pyarrow_table().to_pylist()
    return sorted((tuple(row.values()) for row in rows), key=str)


def expected_rows(batches: Iterable[Batch]) -> list[tuple[object, ...]]:
    newest_values: Batch = {}
    for batch in batches:
        newest_values |= batch
    remaining = ((*window, n) for window, n in newest_values.items() if n is not None)
    return sorted(((key, to_time(start), to_time(end), n) for key, start, end, n in remaining), key=str)


KEYS = st.none() | st.sampled_from("abcdefghijklmnopqrstuvwxyz") | st.just("x" * 100)
"""With none, and with one that is too long to be a bound in a file's statistics."""
VALUES = st.none() | st.integers(0, 9)


def batch_lists(windows: st.SearchStrategy[Window]) -> st.SearchStrategy[list[Batch]]:
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
    windows = st.tuples(KEYS, bounds).map(lambda key_and_bounds: (key_and_bounds[0], *key_and_bounds[1]))
    batches = data.draw(batch_lists(windows))
    with TemporaryDirectory() as folder:
        latest = make_table(Path(folder), span)
        for number, batch in enumerate(batches):
            write_batches(latest, [batch])
            assert read_rows(latest) == expected_rows(batches[: number + 1])


def make_batch_of_keys(total: int) -> Batch:
    return {(f"k{key:04}", 0, 60): 0 for key in range(total)}


def test_a_window_of_many_keys_is_split_by_key_range_and_a_batch_rewrites_only_changed_files(
    tmp_path: Path,
) -> None:
    latest = make_table(tmp_path)
    write_batches(latest, [make_batch_of_keys(80)])
    assert len(open_delta_table(latest.path).file_uris()) == 10
    change = latest.write(make_panes({("k0003", 0, 60): 1, ("k0075", 0, 60): 1}), 1, 1)
    assert (len(change.removes), len(change.adds), sum(file.rows for file in change.adds)) == (2, 2, 16)


def test_new_sessions_do_not_rewrite_files_of_older_ones(tmp_path: Path) -> None:
    latest = make_table(tmp_path)
    write_batches(latest, [{("k", minute, minute + 2): 0 for minute in range(60)}])
    change = latest.write(make_panes({("k", 59, 61): 1, ("k", 58, 60): None}), 1, 1)
    assert (len(change.removes), sum(file.rows for file in change.adds)) == (1, 8)


@pytest.mark.parametrize("kind", ["keys", "sessions"])
def test_new_windows_in_each_batch_leave_few_files(tmp_path: Path, kind: str) -> None:
    latest = make_table(tmp_path)
    windows_of_kind = [(f"k{n:04}", 0, 60) if kind == "keys" else ("k", n, 70) for n in range(60)]
    batches: list[Batch] = [{name: 0} for name in windows_of_kind]
    write_batches(latest, batches)
    assert read_rows(latest) == expected_rows(batches)
    assert len(open_delta_table(latest.path).file_uris()) <= 8


def test_files_of_closed_windows_can_be_merged_beside_an_overlapping_open_window(
    tmp_path: Path,
) -> None:
    latest = make_table(tmp_path, rows_per_file=1)
    batches: list[Batch] = [{("k", minute, minute + 1): 0} for minute in range(10)]
    write_batches(latest, batches)
    batches.append({("long", 5, 50): 1})
    change = latest.write(make_panes(batches[-1]), 10, 10)
    assert merge_small_files(latest.path, "s", 0, to_time(20)) == FileMergeCounts(10, 1)
    latest.commit(10, change, 10)
    assert read_rows(latest) == expected_rows(batches)
