"""Local folders and object stores behave alike; other addresses are refused."""

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
CLOCK_TOLERANCE_MS = 1_000
"""Object stores round times to seconds, and file systems to the last kernel tick."""
STORE = ObjectStoreConfig("http://store:1", "eu-central-1")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/var/tables", Path("/var/tables")),
        ("file:///var/my%20tables", Path("/var/my tables")),
        ("s3://b", ObjectStorePath("s3://b", STORE)),
        ("s3a://b/w/", ObjectStorePath("s3://b/w", STORE)),
    ],
)
def test_a_path_is_parsed_as_a_folder_or_an_object_store(text: str, path: StoragePath) -> None:
    assert parse_storage_path(text, STORE) == path


@pytest.mark.parametrize("text", ["gs://b/w", "s3://", "s3:///", "az://b"])
def test_an_unsupported_scheme_is_refused(text: str) -> None:
    with pytest.raises(
        StorageAddressError, match=f"{text}: tables can be stored only in a folder or in s3://"
    ):
        parse_storage_path(text)


def test_a_relative_path_is_resolved_below_the_warehouse() -> None:
    warehouse = ObjectStorePath("s3://b/w", STORE)
    assert resolve_storage_path(warehouse, "latest/cards") == ObjectStorePath("s3://b/w/latest/cards", STORE)
    assert resolve_storage_path(warehouse, "gs://other/cards") == ObjectStorePath("gs://other/cards", STORE)
    assert resolve_storage_path(warehouse, "/var/cards") == Path("/var/cards")
    assert resolve_storage_path(Path("/w"), "latest/cards") == Path("/w/latest/cards")
    assert resolve_storage_path(Path("/w"), "s3://b/cards") == ObjectStorePath("s3://b/cards")


def test_an_object_store_path_is_no_local_path() -> None:
    with pytest.raises(
        StorageAddressError, match="it is an address of an object store; a local folder is required"
    ):
        Path(ObjectStorePath("s3://b/w"))  # type: ignore[arg-type]


def test_files_of_an_unsupported_store_are_refused() -> None:
    with pytest.raises(StorageAddressError, match="files can be read and written only in s3://"):
        ObjectStorePath("gs://b/w").exists()


def test_a_file_is_written_read_and_removed(somewhere: StoragePath) -> None:
    file = somewhere / "kind" / "rows.parquet"
    assert (file.exists(), file_size(file)) == (False, None)
    make_parent_folder(file)
    written = write_parquet(ROWS, file)
    assert (file.exists(), file_size(file), (somewhere / "kind").exists()) == (True, written, True)
    assert read_parquet(file) == ROWS
    assert [each.name for each in list_folder(somewhere / "kind")] == ["rows.parquet"]
    file.unlink()
    file.unlink(missing_ok=True)
    assert not file.exists()
    with pytest.raises(FileNotFoundError):
        file.unlink()


def test_text_files_are_replaced_whole_and_read_in_order(somewhere: StoragePath) -> None:
    files = [somewhere / f"{number}.json" for number in range(3)]
    for text in ("before", "after"):
        for number, file in enumerate(files):
            write_text(file, f"{text} {number}")
    assert list(read_file_contents(files)) == [b"after 0", b"after 1", b"after 2"]
    assert len(list_folder(somewhere)) == 3


def test_linking_a_file_keeps_an_existing_target(somewhere: StoragePath) -> None:
    source, target = somewhere / "a.parquet", somewhere / "b.parquet"
    write_parquet(ROWS, source)
    link_or_copy_file(source, target)
    write_parquet(ROWS.slice(0, 1), source)
    link_or_copy_file(source, target)
    assert read_parquet(target) == ROWS


def test_warehouse_tables_are_listed_at_the_second_level(somewhere: StoragePath) -> None:
    assert list(list_warehouse_tables(somewhere)) == []
    for name in ("panes/b", "latest/a", "panes/a", "runs/stream/deeper"):
        make_parent_folder(somewhere / name)
        write_deltalake(str(somewhere / name), ROWS, storage_options=delta_storage_options(somewhere))
    make_parent_folder(somewhere / "panes/stray.txt")
    write_text(somewhere / "panes/stray.txt", "not a table")
    assert list(list_warehouse_tables(somewhere)) == ["latest/a", "panes/a", "panes/b"]
    remove_tree(somewhere / "panes")
    assert list(list_warehouse_tables(somewhere)) == ["latest/a"]
    assert (is_delta_table(somewhere / "latest/a"), is_delta_table(somewhere / "panes/a")) == (True, False)
    assert open_delta_table(somewhere / "latest/a").to_pyarrow_table() == ROWS


def test_files_are_listed_with_their_modification_times(somewhere: StoragePath) -> None:
    assert list(list_children(somewhere / "topics")) == []
    before = int(time.time() * 1000) - CLOCK_TOLERANCE_MS
    for name in ("b", "a"):
        make_parent_folder(somewhere / f"topics/{name}/rows.parquet")
        write_parquet(ROWS, somewhere / f"topics/{name}/rows.parquet")
    assert [each.name for each in list_children(somewhere / "topics")] == ["a", "b"]
    ((file, written_ms),) = list_files(somewhere / "topics/a")
    assert file == somewhere / "topics/a/rows.parquet"
    assert before <= written_ms <= int(time.time() * 1000) + CLOCK_TOLERANCE_MS
    assert list(list_files(somewhere / "topics")) == []


def test_a_missing_bucket_raises_an_error(object_store: ObjectStoreConfig) -> None:
    missing = ObjectStorePath("s3://no-such-bucket/w", object_store)
    for access in (
        lambda: list(list_warehouse_tables(missing / "kind")),
        lambda: is_delta_table(missing),
        lambda: open_delta_table(missing),
    ):
        with pytest.raises(StorageUnavailableError, match="the object store does not answer"):
            access()


def list_folder(path: StoragePath) -> list[Path | ObjectStorePath]:
    return list(path.iterdir())


def test_arrow_reads_table_files_without_a_python_file_system(somewhere: StoragePath) -> None:
    """A process is aborted if it ends while a thread of Arrow holds a Python object."""
    for table in (create_delta_table(somewhere / "t", ROWS.schema), open_delta_table(somewhere / "t")):
        assert type(table.to_pyarrow_dataset().filesystem) is SubTreeFileSystem
        assert not isinstance(table.to_pyarrow_dataset().filesystem.base_fs, PyFileSystem)
