"""A place is used alike whether it is a folder or an address; any other address is refused in one sentence."""

import time
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow.fs import PyFileSystem, SubTreeFileSystem

from penstock.pipelines.errors import StoreAwayError, StoreError
from penstock.pipelines.store import Address, Place, Store, place_below, place_of
from penstock.pipelines.store.files import (
    delta_table,
    files_in,
    is_table,
    make_folder,
    new_table,
    options,
    places_in,
    read_all,
    read_rows,
    remove_below,
    same_file,
    size_of,
    tables_below,
    write_rows,
    write_text,
)

ROWS = pa.table({"n": [1, 2, 3]})
SLACK_MS = 1_000
"""An object store tells times by whole seconds, and a file system by the last tick of the kernel."""
ELSEWHERE = Store("http://elsewhere:1", "eu-central-1")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("/var/tables", Path("/var/tables")),
        ("file:///var/my%20tables", Path("/var/my tables")),
        ("s3://b", Address("s3://b", ELSEWHERE)),
        ("s3a://b/w/", Address("s3://b/w", ELSEWHERE)),
    ],
)
def test_a_text_is_a_folder_or_an_address(text: str, place: Place) -> None:
    assert place_of(text, ELSEWHERE) == place


@pytest.mark.parametrize("text", ["gs://b/w", "s3://", "s3:///", "az://b"])
def test_an_address_of_another_kind_is_refused(text: str) -> None:
    with pytest.raises(StoreError, match=f"{text}: tables lie in a folder or in s3://bucket/prefix"):
        place_of(text)


def test_what_a_pipeline_names_is_below_the_warehouse_or_elsewhere() -> None:
    warehouse = Address("s3://b/w", ELSEWHERE)
    assert place_below(warehouse, "latest/cards") == Address("s3://b/w/latest/cards", ELSEWHERE)
    assert place_below(warehouse, "gs://other/cards") == Address("gs://other/cards", ELSEWHERE)
    assert place_below(warehouse, "/var/cards") == Path("/var/cards")
    assert place_below(Path("/w"), "latest/cards") == Path("/w/latest/cards")
    assert place_below(Path("/w"), "s3://b/cards") == Address("s3://b/cards")


def test_an_address_is_never_taken_for_a_folder() -> None:
    with pytest.raises(StoreError, match="it is an address of an object store, and a folder is wanted"):
        Path(Address("s3://b/w"))  # type: ignore[arg-type]


def test_files_of_a_store_that_is_not_spoken_to_are_refused() -> None:
    with pytest.raises(StoreError, match="files can be read and written in s3:// only"):
        Address("gs://b/w").exists()


def test_a_file_is_written_read_measured_and_removed(somewhere: Place) -> None:
    file = somewhere / "kind" / "rows.parquet"
    assert (file.exists(), size_of(file)) == (False, None)
    make_folder(file)
    written = write_rows(ROWS, file)
    assert (file.exists(), size_of(file), (somewhere / "kind").exists()) == (True, written, True)
    assert read_rows(file) == ROWS
    assert [each.name for each in file_names(somewhere / "kind")] == ["rows.parquet"]
    file.unlink()
    file.unlink(missing_ok=True)
    assert not file.exists()
    with pytest.raises(FileNotFoundError):
        file.unlink()


def test_texts_are_replaced_whole_and_read_in_their_order(somewhere: Place) -> None:
    files = [somewhere / f"{number}.json" for number in range(3)]
    for text in ("before", "after"):
        for number, file in enumerate(files):
            write_text(file, f"{text} {number}")
    assert list(read_all(files)) == [b"after 0", b"after 1", b"after 2"]
    assert len(file_names(somewhere)) == 3


def test_a_file_gets_another_name_and_one_that_is_there_stays(somewhere: Place) -> None:
    source, target = somewhere / "a.parquet", somewhere / "b.parquet"
    write_rows(ROWS, source)
    same_file(source, target)
    write_rows(ROWS.slice(0, 1), source)
    same_file(source, target)
    assert read_rows(target) == ROWS


def test_tables_are_found_two_levels_down(somewhere: Place) -> None:
    assert list(tables_below(somewhere)) == []
    for name in ("panes/b", "latest/a", "panes/a", "runs/stream/deeper"):
        make_folder(somewhere / name)
        write_deltalake(str(somewhere / name), ROWS, storage_options=options(somewhere))
    make_folder(somewhere / "panes/stray.txt")
    write_text(somewhere / "panes/stray.txt", "no table")
    assert list(tables_below(somewhere)) == ["latest/a", "panes/a", "panes/b"]
    remove_below(somewhere / "panes")
    assert list(tables_below(somewhere)) == ["latest/a"]
    assert (is_table(somewhere / "latest/a"), is_table(somewhere / "panes/a")) == (True, False)
    assert delta_table(somewhere / "latest/a").to_pyarrow_table() == ROWS


def test_files_are_told_with_when_they_were_written(somewhere: Place) -> None:
    assert list(places_in(somewhere / "topics")) == []
    before = int(time.time() * 1000) - SLACK_MS
    for name in ("b", "a"):
        make_folder(somewhere / f"topics/{name}/rows.parquet")
        write_rows(ROWS, somewhere / f"topics/{name}/rows.parquet")
    assert [each.name for each in places_in(somewhere / "topics")] == ["a", "b"]
    ((file, written_ms),) = files_in(somewhere / "topics/a")
    assert file == somewhere / "topics/a/rows.parquet"
    assert before <= written_ms <= int(time.time() * 1000) + SLACK_MS
    assert list(files_in(somewhere / "topics")) == []


def test_a_bucket_that_is_not_there_is_not_taken_for_an_empty_one(object_store: Store) -> None:
    nowhere = Address("s3://no-such-bucket/w", object_store)
    for ask in (
        lambda: list(tables_below(nowhere / "kind")),
        lambda: is_table(nowhere),
        lambda: delta_table(nowhere),
    ):
        with pytest.raises(StoreAwayError, match="the object store cannot be asked"):
            ask()


def file_names(place: Place) -> list[Path | Address]:
    return list(place.iterdir())


def test_arrow_reads_the_files_of_a_table_without_python_between(somewhere: Place) -> None:
    """A process that ends while one of Arrow's threads still holds an object of Python is aborted."""
    for table in (new_table(somewhere / "t", ROWS.schema), delta_table(somewhere / "t")):
        assert type(table.to_pyarrow_dataset().filesystem) is SubTreeFileSystem
        assert not isinstance(table.to_pyarrow_dataset().filesystem.base_fs, PyFileSystem)
