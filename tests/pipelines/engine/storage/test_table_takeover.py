"""A table takes over what was made beside it, in one commit, once; in a folder and in an object store alike."""

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


def ours(name: str) -> bool:
    return name.startswith("stream-")


def written(place: StoragePath, schema: pa.Schema, application: str, numbers: list[int]) -> LogTable:
    """A batch for each number."""
    table = LogTable(place, schema, application)
    for batch, n in enumerate(numbers):
        rows = pa.Table.from_pylist([{"n": n, "window_start": n * 1_000_000, "word": "w"}], schema=schema)
        table.commit(batch, table.write(rows, batch, batch), batch)
    return table


def contents(place: StoragePath) -> list[int]:
    return sorted(open_delta_table(place).to_pyarrow_table().column("n").to_pylist())


def test_a_stream_s_own_table_is_replaced_whole_with_its_columns(somewhere: StoragePath) -> None:
    live = written(somewhere / "live", BEFORE, "stream", [1, 2, 3])
    written(somewhere / "beside", AFTER, "stream", [10, 20])
    assert take_over_table(live.path, somewhere / "beside", "stream", 7, 99)
    table = open_delta_table(live.path)
    assert contents(live.path) == [10, 20]
    assert pa.schema(table.schema().to_arrow()).names == AFTER.names
    assert table.transaction_version("stream") == 7
    assert table.metadata().name == "live"
    assert table.metadata().configuration == checkpoint_configuration(somewhere)
    assert sorted(open_delta_table(live.path, version=3).to_pyarrow_table().column("n").to_pylist()) == [
        1,
        2,
        3,
    ]


def test_it_is_done_once(somewhere: StoragePath) -> None:
    live = written(somewhere / "live", BEFORE, "stream", [1, 2, 3])
    written(somewhere / "beside", AFTER, "stream", [10, 20])
    assert take_over_table(live.path, somewhere / "beside", "stream", 7, 99)
    version = open_delta_table(live.path).version()
    assert not take_over_table(live.path, somewhere / "beside", "stream", 7, 99)
    assert open_delta_table(live.path).version() == version


def test_of_a_shared_table_only_what_is_ours_is_replaced(somewhere: StoragePath) -> None:
    live = written(somewhere / "live", BEFORE, "stream", [1, 2, 3])
    written(somewhere / "live", BEFORE, "other", [100, 200])
    written(somewhere / "beside", BEFORE, "stream", [10])
    assert take_over_table(live.path, somewhere / "beside", "stream", 7, 99, is_ours=ours)
    assert contents(live.path) == [10, 100, 200]
    assert open_delta_table(live.path).transaction_version("other") == 1


def test_a_table_that_was_not_there_is_made(somewhere: StoragePath) -> None:
    written(somewhere / "beside", AFTER, "stream", [10, 20])
    assert take_over_table(somewhere / "live", somewhere / "beside", "stream", 7, 99)
    assert contents(somewhere / "live") == [10, 20]


def test_files_are_found_by_their_statistics_afterwards(somewhere: StoragePath) -> None:
    written(somewhere / "beside", AFTER, "stream", [10, 20])
    take_over_table(somewhere / "live", somewhere / "beside", "stream", 7, 99)
    told = pa.table(open_delta_table(somewhere / "live").get_add_actions(flatten=True)).to_pylist()
    made = pa.table(open_delta_table(somewhere / "beside").get_add_actions(flatten=True)).to_pylist()
    differ = ("path", "modification_time", "size_bytes")
    assert [{k: v for k, v in file.items() if k not in differ} for file in sorted(told, key=by_path)] == [
        {k: v for k, v in file.items() if k not in differ} for file in sorted(made, key=by_path)
    ]


def test_files_that_are_merged_at_the_same_moment_do_not_come_back(
    somewhere: StoragePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = written(somewhere / "live", BEFORE, "stream", list(range(10)))
    written(somewhere / "beside", BEFORE, "stream", [10])
    added, merged = table_takeover._link_files, []

    def meanwhile(*args: object) -> object:
        if not merged:
            merged.append(merge_small_files(live.path, "stream", 0))
        return added(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(table_takeover, "_link_files", meanwhile)
    assert take_over_table(live.path, somewhere / "beside", "stream", 11, 99)
    assert merged == [FileMergeCounts(10, 1)]
    assert contents(live.path) == [10]


def by_path(file: dict[str, str]) -> str:
    return PurePath(file["path"]).name[-20:]
