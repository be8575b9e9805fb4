"""A table takes over what was made beside it, in one commit, once; in a folder and in an object store alike."""

from pathlib import PurePath

import pyarrow as pa
import pytest

from penstock.pipelines.store import Place
from penstock.pipelines.store.files import delta_table
from penstock.pipelines.tables import takeover
from penstock.pipelines.tables.columns import TIMESTAMP
from penstock.pipelines.tables.log import LogTable
from penstock.pipelines.tables.table import checkpoints
from penstock.pipelines.tables.takeover import take_over
from penstock.pipelines.tables.upkeep import Merged, merge_small_files

BEFORE = pa.schema([pa.field("n", pa.int64()), pa.field("window_start", TIMESTAMP)])
AFTER = pa.schema([*BEFORE, pa.field("word", pa.string())])


def ours(name: str) -> bool:
    return name.startswith("stream-")


def written(place: Place, schema: pa.Schema, application: str, numbers: list[int]) -> LogTable:
    """A batch for each number."""
    table = LogTable(place, schema, application)
    for batch, n in enumerate(numbers):
        rows = pa.Table.from_pylist([{"n": n, "window_start": n * 1_000_000, "word": "w"}], schema=schema)
        table.commit(batch, table.write(rows, batch, batch), batch)
    return table


def contents(place: Place) -> list[int]:
    return sorted(delta_table(place).to_pyarrow_table().column("n").to_pylist())


def test_a_stream_s_own_table_is_replaced_whole_with_its_columns(somewhere: Place) -> None:
    live = written(somewhere / "live", BEFORE, "stream", [1, 2, 3])
    written(somewhere / "beside", AFTER, "stream", [10, 20])
    assert take_over(live.path, somewhere / "beside", "stream", 7, 99)
    table = delta_table(live.path)
    assert contents(live.path) == [10, 20]
    assert pa.schema(table.schema().to_arrow()).names == AFTER.names
    assert table.transaction_version("stream") == 7
    assert table.metadata().name == "live"
    assert table.metadata().configuration == checkpoints(somewhere)
    assert sorted(delta_table(live.path, version=3).to_pyarrow_table().column("n").to_pylist()) == [1, 2, 3]


def test_it_is_done_once(somewhere: Place) -> None:
    live = written(somewhere / "live", BEFORE, "stream", [1, 2, 3])
    written(somewhere / "beside", AFTER, "stream", [10, 20])
    assert take_over(live.path, somewhere / "beside", "stream", 7, 99)
    version = delta_table(live.path).version()
    assert not take_over(live.path, somewhere / "beside", "stream", 7, 99)
    assert delta_table(live.path).version() == version


def test_of_a_shared_table_only_what_is_ours_is_replaced(somewhere: Place) -> None:
    live = written(somewhere / "live", BEFORE, "stream", [1, 2, 3])
    written(somewhere / "live", BEFORE, "other", [100, 200])
    written(somewhere / "beside", BEFORE, "stream", [10])
    assert take_over(live.path, somewhere / "beside", "stream", 7, 99, whose=ours)
    assert contents(live.path) == [10, 100, 200]
    assert delta_table(live.path).transaction_version("other") == 1


def test_a_table_that_was_not_there_is_made(somewhere: Place) -> None:
    written(somewhere / "beside", AFTER, "stream", [10, 20])
    assert take_over(somewhere / "live", somewhere / "beside", "stream", 7, 99)
    assert contents(somewhere / "live") == [10, 20]


def test_files_are_found_by_their_statistics_afterwards(somewhere: Place) -> None:
    written(somewhere / "beside", AFTER, "stream", [10, 20])
    take_over(somewhere / "live", somewhere / "beside", "stream", 7, 99)
    told = pa.table(delta_table(somewhere / "live").get_add_actions(flatten=True)).to_pylist()
    made = pa.table(delta_table(somewhere / "beside").get_add_actions(flatten=True)).to_pylist()
    differ = ("path", "modification_time", "size_bytes")
    assert [{k: v for k, v in file.items() if k not in differ} for file in sorted(told, key=by_path)] == [
        {k: v for k, v in file.items() if k not in differ} for file in sorted(made, key=by_path)
    ]


def test_files_that_are_merged_at_the_same_moment_do_not_come_back(
    somewhere: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = written(somewhere / "live", BEFORE, "stream", list(range(10)))
    written(somewhere / "beside", BEFORE, "stream", [10])
    added, merged = takeover._added, []

    def meanwhile(*args: object) -> object:
        if not merged:
            merged.append(merge_small_files(live.path, "stream", 0))
        return added(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(takeover, "_added", meanwhile)
    assert take_over(live.path, somewhere / "beside", "stream", 11, 99)
    assert merged == [Merged(10, 1)]
    assert contents(live.path) == [10]


def by_path(file: dict[str, str]) -> str:
    return PurePath(file["path"]).name[-20:]
