"""A table takes over the files of another table in one commit, on local disk and in an object store."""

from pathlib import PurePath

import pyarrow as pa
import pytest

from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table
from penstock.engine.tables import table_takeover
from penstock.engine.tables.batch_table import checkpoint_configuration
from penstock.engine.tables.file_maintenance import FileMergeCounts, merge_small_files
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.table_takeover import take_over_table
from penstock.engine.tables.timestamps import TIMESTAMP_TYPE

BEFORE = pa.schema([pa.field("n", pa.int64()), pa.field("window_start", TIMESTAMP_TYPE)])
AFTER = pa.schema([*BEFORE, pa.field("word", pa.string())])


def is_row_of_stream(name: str) -> bool:
    return name.startswith("stream-")


def write_table(path: StoragePath, schema: pa.Schema, application: str, numbers: list[int]) -> LogTable:
    """Write a table with one batch per number."""
    table = LogTable(path, schema, application)
    for batch, n in enumerate(numbers):
        rows = pa.Table.from_pylist([{"n": n, "window_start": n * 1_000_000, "word": "w"}], schema=schema)
        table.commit(batch, table.write(rows, batch, batch), batch)
    return table


def read_numbers(path: StoragePath) -> list[int]:
    return sorted(open_delta_table(path).to_pyarrow_table().column("n").to_pylist())


def test_an_exclusive_table_is_replaced_with_its_columns(somewhere: StoragePath) -> None:
    live = write_table(somewhere / "live", BEFORE, "stream", [1, 2, 3])
    write_table(somewhere / "beside", AFTER, "stream", [10, 20])
    assert take_over_table(live.path, somewhere / "beside", "stream", 7, 99)
    table = open_delta_table(live.path)
    assert read_numbers(live.path) == [10, 20]
    assert pa.schema(table.schema().to_arrow()).names == AFTER.names
    assert table.transaction_version("stream") == 7
    assert table.metadata().name == "live"
    assert table.metadata().configuration == checkpoint_configuration(somewhere)
    assert sorted(open_delta_table(live.path, version=3).to_pyarrow_table().column("n").to_pylist()) == [
        1,
        2,
        3,
    ]


def test_a_repeated_takeover_changes_nothing(somewhere: StoragePath) -> None:
    live = write_table(somewhere / "live", BEFORE, "stream", [1, 2, 3])
    write_table(somewhere / "beside", AFTER, "stream", [10, 20])
    assert take_over_table(live.path, somewhere / "beside", "stream", 7, 99)
    version = open_delta_table(live.path).version()
    assert not take_over_table(live.path, somewhere / "beside", "stream", 7, 99)
    assert open_delta_table(live.path).version() == version


def test_a_takeover_of_a_shared_table_replaces_only_rows_of_the_stream(somewhere: StoragePath) -> None:
    live = write_table(somewhere / "live", BEFORE, "stream", [1, 2, 3])
    write_table(somewhere / "live", BEFORE, "other", [100, 200])
    write_table(somewhere / "beside", BEFORE, "stream", [10])
    assert take_over_table(live.path, somewhere / "beside", "stream", 7, 99, is_ours=is_row_of_stream)
    assert read_numbers(live.path) == [10, 100, 200]
    assert open_delta_table(live.path).transaction_version("other") == 1


def test_a_missing_table_is_created(somewhere: StoragePath) -> None:
    write_table(somewhere / "beside", AFTER, "stream", [10, 20])
    assert take_over_table(somewhere / "live", somewhere / "beside", "stream", 7, 99)
    assert read_numbers(somewhere / "live") == [10, 20]


def test_file_statistics_survive_the_takeover(somewhere: StoragePath) -> None:
    write_table(somewhere / "beside", AFTER, "stream", [10, 20])
    take_over_table(somewhere / "live", somewhere / "beside", "stream", 7, 99)
    actions = pa.table(open_delta_table(somewhere / "live").get_add_actions(flatten=True)).to_pylist()
    expected = pa.table(open_delta_table(somewhere / "beside").get_add_actions(flatten=True)).to_pylist()
    volatile = ("path", "modification_time", "size_bytes")
    assert [
        {k: v for k, v in file.items() if k not in volatile} for file in sorted(actions, key=path_suffix)
    ] == [{k: v for k, v in file.items() if k not in volatile} for file in sorted(expected, key=path_suffix)]


def test_files_merged_during_a_takeover_do_not_return(
    somewhere: StoragePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = write_table(somewhere / "live", BEFORE, "stream", list(range(10)))
    write_table(somewhere / "beside", BEFORE, "stream", [10])
    link_files, merges = table_takeover._link_files, []

    def merge_then_link(*args: object) -> object:
        if not merges:
            merges.append(merge_small_files(live.path, "stream", 0))
        return link_files(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(table_takeover, "_link_files", merge_then_link)
    assert take_over_table(live.path, somewhere / "beside", "stream", 11, 99)
    assert merges == [FileMergeCounts(10, 1)]
    assert read_numbers(live.path) == [10]


def path_suffix(file: dict[str, str]) -> str:
    return PurePath(file["path"]).name[-20:]
