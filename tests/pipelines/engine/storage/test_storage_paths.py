"""A place is used alike whether it is a folder or an address; any other address is refused in one sentence."""

import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow.fs import PyFileSystem, SubTreeFileSystem

from penstock.engine.errors import StorageAddressError, StorageUnavailableError
from penstock.engine.storage import (
    ObjectStoreConfig,
    ObjectStorePath,
    StoragePath,
    parse_storage_path,
    resolve_storage_path,
)
from penstock.engine.storage.file_access import (
    create_delta_table,
    delta_storage_options,
    file_size,
    is_delta_table,
    link_or_copy_file,
    list_children,
    list_files,
    list_warehouse_tables,
    make_parent_folder,
    open_delta_table,
    read_file_contents,
    read_parquet,
    remove_tree,
    write_parquet,
    write_text,
)

ROWS = pa.table({"n": [1, 2, 3]})
SLACK_MS = 1_000
"""An object store tells times by whole seconds, and a file system by the last tick of the kernel."""
ELSEWHERE = ObjectStoreConfig("http://elsewhere:1", "eu-central-1")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/var/tables", Path("/var/tables")),
        ("file:///var/my%20tables", Path("/var/my tables")),
        ("s3://b", ObjectStorePath("s3://b", ELSEWHERE)),
        ("s3a://b/w/", ObjectStorePath("s3://b/w", ELSEWHERE)),
    ],
)
def test_a_text_is_a_folder_or_an_address(text: str, place: StoragePath) -> None:
    assert parse_storage_path(text, ELSEWHERE) == place


@pytest.mark.parametrize("text", ["gs://b/w", "s3://", "s3:///", "az://b"])
def test_an_address_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(
        StorageAddressError, match=f"{text}: tables can be stored only in a folder or in s3://"
    ):
        parse_storage_path(text)


def test_what_a_pipeline_names_is_below_the_warehouse_or_elsewhere() -> None:
    warehouse = ObjectStorePath("s3://b/w", ELSEWHERE)
    assert resolve_storage_path(warehouse, "latest/cards") == ObjectStorePath(
        "s3://b/w/latest/cards", ELSEWHERE
    )
    assert resolve_storage_path(warehouse, "gs://other/cards") == ObjectStorePath(
        "gs://other/cards", ELSEWHERE
    )
    assert resolve_storage_path(warehouse, "/var/cards") == Path("/var/cards")
    assert resolve_storage_path(Path("/w"), "latest/cards") == Path("/w/latest/cards")
    assert resolve_storage_path(Path("/w"), "s3://b/cards") == ObjectStorePath("s3://b/cards")


def test_an_address_is_never_taken_for_a_folder() -> None:
    with pytest.raises(
        StorageAddressError, match="it is an address of an object store; a local folder is required"
    ):
        Path(ObjectStorePath("s3://b/w"))  # type: ignore[arg-type]


def test_files_of_a_store_that_is_not_spoken_to_are_refused() -> None:
    with pytest.raises(StorageAddressError, match="files can be read and written only in s3://"):
        ObjectStorePath("gs://b/w").exists()


def test_a_file_is_written_read_measured_and_removed(somewhere: StoragePath) -> None:
    file = somewhere / "kind" / "rows.parquet"
    assert (file.exists(), file_size(file)) == (False, None)
    make_parent_folder(file)
    written = write_parquet(ROWS, file)
    assert (file.exists(), file_size(file), (somewhere / "kind").exists()) == (True, written, True)
    assert read_parquet(file) == ROWS
    assert [each.name for each in file_names(somewhere / "kind")] == ["rows.parquet"]
    file.unlink()
    file.unlink(missing_ok=True)
    assert not file.exists()
    with pytest.raises(FileNotFoundError):
        file.unlink()


def test_texts_are_replaced_whole_and_read_in_their_order(somewhere: StoragePath) -> None:
    files = [somewhere / f"{number}.json" for number in range(3)]
    for text in ("before", "after"):
        for number, file in enumerate(files):
            write_text(file, f"{text} {number}")
    assert list(read_file_contents(files)) == [b"after 0", b"after 1", b"after 2"]
    assert len(file_names(somewhere)) == 3


def test_a_file_gets_another_name_and_one_that_is_there_stays(somewhere: StoragePath) -> None:
    source, target = somewhere / "a.parquet", somewhere / "b.parquet"
    write_parquet(ROWS, source)
    link_or_copy_file(source, target)
    write_parquet(ROWS.slice(0, 1), source)
    link_or_copy_file(source, target)
    assert read_parquet(target) == ROWS


def test_tables_are_found_two_levels_down(somewhere: StoragePath) -> None:
    assert list(list_warehouse_tables(somewhere)) == []
    for name in ("panes/b", "latest/a", "panes/a", "runs/stream/deeper"):
        make_parent_folder(somewhere / name)
        write_deltalake(str(somewhere / name), ROWS, storage_options=delta_storage_options(somewhere))
    make_parent_folder(somewhere / "panes/stray.txt")
    write_text(somewhere / "panes/stray.txt", "no table")
    assert list(list_warehouse_tables(somewhere)) == ["latest/a", "panes/a", "panes/b"]
    remove_tree(somewhere / "panes")
    assert list(list_warehouse_tables(somewhere)) == ["latest/a"]
    assert (is_delta_table(somewhere / "latest/a"), is_delta_table(somewhere / "panes/a")) == (True, False)
    assert open_delta_table(somewhere / "latest/a").to_pyarrow_table() == ROWS


def test_files_are_told_with_when_they_were_written(somewhere: StoragePath) -> None:
    assert list(list_children(somewhere / "topics")) == []
    before = int(time.time() * 1000) - SLACK_MS
    for name in ("b", "a"):
        make_parent_folder(somewhere / f"topics/{name}/rows.parquet")
        write_parquet(ROWS, somewhere / f"topics/{name}/rows.parquet")
    assert [each.name for each in list_children(somewhere / "topics")] == ["a", "b"]
    ((file, written_ms),) = list_files(somewhere / "topics/a")
    assert file == somewhere / "topics/a/rows.parquet"
    assert before <= written_ms <= int(time.time() * 1000) + SLACK_MS
    assert list(list_files(somewhere / "topics")) == []


def test_a_bucket_that_is_not_there_is_not_taken_for_an_empty_one(object_store: ObjectStoreConfig) -> None:
    nowhere = ObjectStorePath("s3://no-such-bucket/w", object_store)
    for ask in (
        lambda: list(list_warehouse_tables(nowhere / "kind")),
        lambda: is_delta_table(nowhere),
        lambda: open_delta_table(nowhere),
    ):
        with pytest.raises(StorageUnavailableError, match="the object store does not answer"):
            ask()


def file_names(place: StoragePath) -> list[Path | ObjectStorePath]:
    return list(place.iterdir())


def test_arrow_reads_the_files_of_a_table_without_python_between(somewhere: StoragePath) -> None:
    """A process that ends while one of Arrow's threads still holds an object of Python is aborted."""
    for table in (create_delta_table(somewhere / "t", ROWS.schema), open_delta_table(somewhere / "t")):
        assert type(table.to_pyarrow_dataset().filesystem) is SubTreeFileSystem
        assert not isinstance(table.to_pyarrow_dataset().filesystem.base_fs, PyFileSystem)
