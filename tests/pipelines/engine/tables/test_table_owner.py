"""The owner of a table, recorded in the table: nobody else commits, and what is rightful goes on."""

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from penstock.engine.batch.stream_claim import make_stream_claim
from penstock.engine.errors import TableOwnedError
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import open_delta_table, read_parquet
from penstock.engine.stream_folders import is_valid_run_name, load_or_create_writer_id
from penstock.engine.tables.batch_table import claim_existing_tables
from penstock.engine.tables.folder_owner import claim_folder
from penstock.engine.tables.log_table import LogTable
from penstock.engine.tables.table_owner import (
    TableClaim,
    TableOwner,
    read_table_owner,
    record_table_owner,
)
from penstock.engine.tables.table_takeover import take_over_table
from penstock.engine.tables.table_writers import list_current_writers, list_table_writers

SCHEMA = pa.schema([pa.field("n", pa.int64())])
OWN = TableClaim(TableOwner("orders_minute", "id-1", "here:/home"))
OTHER_STREAM = TableClaim(TableOwner("clash", "id-2", "here:/home"))
OTHER_HOME = TableClaim(TableOwner("orders_minute", "id-3", "there:/checkout"))


def commit(table: LogTable, batch: int) -> bool:
    rows = pa.Table.from_pylist([{"n": batch}], schema=SCHEMA)
    return table.commit(batch, table.write(rows, batch, batch), batch)


def write_unowned(path: StoragePath, stream: str, batches: int) -> LogTable:
    """Write a table as release 0.1.0 did."""
    table = LogTable(path, SCHEMA, stream)
    for batch in range(batches):
        commit(table, batch)
    return table


def read_numbers(path: StoragePath) -> list[int]:
    return sorted(open_delta_table(path).to_pyarrow_table().column("n").to_pylist())


@pytest.mark.parametrize("intruder", [OTHER_STREAM, OTHER_HOME], ids=["other stream", "other home"])
def test_a_table_is_written_by_its_owner_only(somewhere: StoragePath, intruder: TableClaim) -> None:
    table = LogTable(somewhere / "t", SCHEMA, "orders_minute")
    table.claim(OWN)
    assert commit(table, 0)
    with pytest.raises(TableOwnedError) as refusal:
        LogTable(somewhere / "t", SCHEMA, intruder.owner.stream).claim(intruder)
    assert "belongs to stream orders_minute of here:/home" in str(refusal.value)
    with pytest.raises(TableOwnedError):
        claim_existing_tables([somewhere / "none", somewhere / "t"], intruder)
    assert commit(table, 1), "the owner goes on"
    assert read_numbers(somewhere / "t") == [0, 1]


def test_a_table_of_another_is_refused_before_it_gets_columns(tmp_path: Path) -> None:
    LogTable(tmp_path / "t", SCHEMA, "orders_minute").claim(OWN)
    version = open_delta_table(tmp_path / "t").version()
    with pytest.raises(TableOwnedError):
        claim_existing_tables([tmp_path / "t"], OTHER_STREAM)
    assert open_delta_table(tmp_path / "t").version() == version


@pytest.mark.parametrize("refreshed", [False, True], ids=["stale", "refreshed ahead"])
def test_a_writer_that_lost_its_table_commits_nothing_more(somewhere: StoragePath, refreshed: bool) -> None:
    table = LogTable(somewhere / "t", SCHEMA, "orders_minute")
    table.claim(OWN)
    commit(table, 0)
    if refreshed:
        table.refresh_ahead()
    record_table_owner(open_delta_table(somewhere / "t"), OTHER_HOME.owner)
    with pytest.raises(TableOwnedError, match="there:/checkout"):
        commit(table, 1)
    assert read_numbers(somewhere / "t") == [0]


def test_a_table_of_release_0_1_is_adopted_by_the_stream_that_knows_its_batches(
    somewhere: StoragePath,
) -> None:
    write_unowned(somewhere / "t", "orders_minute", 3)
    for stranger in (OTHER_STREAM, TableClaim(OTHER_HOME.owner), TableClaim(OTHER_HOME.owner, 1)):
        with pytest.raises(TableOwnedError):
            claim_existing_tables([somewhere / "t"], stranger)
        assert read_table_owner(open_delta_table(somewhere / "t")) is None
    claim_existing_tables([somewhere / "t"], TableClaim(OWN.owner, 2))
    assert read_table_owner(open_delta_table(somewhere / "t")) == OWN.owner
    table = LogTable(somewhere / "t", SCHEMA, "orders_minute")
    table.claim(TableClaim(OWN.owner, 2))
    assert not commit(table, 2), "batches stay committed once"
    assert commit(table, 3)


def test_a_table_that_another_program_filled_is_refused(tmp_path: Path) -> None:
    table = write_unowned(tmp_path / "t", "orders_minute", 1)
    (file,) = open_delta_table(tmp_path / "t").get_add_actions().column("path").to_pylist()
    other = tmp_path / "other"
    write_deltalake(other, read_parquet(table.path / file))
    with pytest.raises(TableOwnedError, match="a program other than Penstock"):
        claim_existing_tables([other], OWN)


def test_of_two_that_adopt_a_table_one_wins(tmp_path: Path) -> None:
    LogTable(tmp_path / "t", SCHEMA, "orders_minute")
    first, second = (LogTable(tmp_path / "t", SCHEMA, stream) for stream in ("orders_minute", "clash"))
    first.claim(OWN)
    with pytest.raises(TableOwnedError, match="belongs to stream orders_minute"):
        second.claim(OTHER_STREAM)
    assert read_table_owner(open_delta_table(tmp_path / "t")) == OWN.owner


def test_the_owner_survives_replays_columns_and_checkpoints(somewhere: StoragePath) -> None:
    table = LogTable(somewhere / "t", SCHEMA, "orders_minute")
    table.claim(OWN)
    commit(table, 0)
    write_unowned(somewhere / "replayed", "orders_minute", 1)
    take_over_table(somewhere / "t", somewhere / "replayed", "orders_minute", 5, 9)
    wider = pa.schema([*SCHEMA, pa.field("word", pa.string())])
    reopened = LogTable(somewhere / "t", wider, "orders_minute")
    delta_table = open_delta_table(somewhere / "t")
    delta_table.create_checkpoint()
    delta_table.cleanup_metadata()
    reopened.claim(OWN)
    assert read_table_owner(open_delta_table(somewhere / "t")) == OWN.owner


def test_the_log_names_every_writer_and_those_whose_rows_may_remain(somewhere: StoragePath) -> None:
    path = somewhere / "t"
    write_unowned(path, "orders_minute", 2)
    write_unowned(path, "clash", 3)
    assert {name: writer.last_batch for name, writer in list_table_writers(path).items()} == {
        "orders_minute": 1,
        "clash": 2,
    }
    assert list_current_writers(path).keys() == {"orders_minute", "clash"}
    assert list_current_writers(path)["clash"].version == open_delta_table(path).version()
    write_unowned(somewhere / "replayed", "orders_minute", 1)
    take_over_table(path, somewhere / "replayed", "orders_minute", 7, 9)
    assert list_current_writers(path).keys() == {"orders_minute"}, "the replay replaced all rows"
    assert list_table_writers(path).keys() == {"orders_minute", "clash"}


def test_writers_are_known_after_the_log_was_shortened(tmp_path: Path) -> None:
    write_unowned(tmp_path / "t", "clash", 2)
    open_delta_table(tmp_path / "t").create_checkpoint()
    for commit_file in (tmp_path / "t" / "_delta_log").glob("*.json"):
        commit_file.unlink()
    writers = list_current_writers(tmp_path / "t")
    assert writers.keys() == {"clash"}
    assert writers["clash"].last_batch == 1


def test_a_stream_folder_keeps_its_id_when_it_moves(tmp_path: Path) -> None:
    home, moved = tmp_path / "home" / "streams", tmp_path / "moved" / "streams"
    claim = make_stream_claim(home, "orders_minute")
    assert make_stream_claim(home, "orders_minute") == claim
    shutil.copytree(home, moved)
    assert make_stream_claim(moved, "orders_minute").owner.is_same_writer(claim.owner)
    assert make_stream_claim(tmp_path / "new", "orders_minute").owner.writer_id != claim.owner.writer_id
    assert load_or_create_writer_id(home, "clash") != claim.owner.writer_id
    assert not is_valid_run_name("writer-id")


def test_a_folder_of_a_sink_outside_delta_has_an_owner_too(somewhere: StoragePath) -> None:
    claim_folder(somewhere / "published" / "alerts", OWN)
    claim_folder(somewhere / "published" / "alerts", OWN)
    with pytest.raises(TableOwnedError, match="stream orders_minute of here:/home"):
        claim_folder(somewhere / "published" / "alerts", OTHER_STREAM)
