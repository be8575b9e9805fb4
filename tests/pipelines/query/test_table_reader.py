"""`penstock.open`: conversions, versions, changes and `watch`, compared with the rows of the stream."""

import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.batch.stream_bench import Bench

import penstock
from penstock.conformance.reference.input_records import InputBatch, InputRecord
from penstock.query.errors import MissingLibraryError, QueryError
from penstock.query.table_changes import BatchChanges, WatchOptions
from penstock.query.table_reader import TableReader


def open_table(stream: Bench, name: str = "stream", **selection: Any) -> TableReader:
    return penstock.open(name, warehouse=str(stream.warehouse), **selection)


def sort_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=repr)


def test_each_conversion_has_the_selected_rows(stream: Bench) -> None:
    table, names = open_table(stream), ["key", "n"]
    expected = sort_rows(
        [{name: row[name] for name in names} for row in stream.rows("latest/stream") if row["n"] > 1]
    )
    selection: dict[str, Any] = {"columns": names, "where": "n > 1"}
    assert sort_rows(table.to_arrow(**selection).to_pylist()) == expected != []
    assert sort_rows(table.to_polars(**selection).to_dicts()) == expected
    assert sort_rows(table.to_pandas(**selection).to_dict("records")) == expected
    assert sort_rows(table.to_duckdb(**selection).to_arrow_table().to_pylist()) == expected
    with duckdb.connect() as connection:
        relation = table.to_duckdb(**selection, connection=connection)
        assert sort_rows(relation.to_arrow_table().to_pylist()) == expected


def test_a_whole_table_is_the_default(stream: Bench) -> None:
    table = open_table(stream, "stream_log")
    assert sort_rows(table.to_arrow().to_pylist()) == stream.rows("panes/stream")
    assert table.columns == list(stream.rows("panes/stream")[0])
    assert isinstance(table.to_polars(), pl.DataFrame)


def test_a_version_is_selected_by_number_batch_and_time(stream: Bench) -> None:
    folder = Path(str(stream.warehouse)) / "latest/stream"
    for entry in DeltaTable(folder).history():
        expected = sort_rows(DeltaTable(folder, entry["version"]).to_pyarrow_table().to_pylist())
        table = open_table(stream, version=entry["version"])
        assert (table.version, sort_rows(table.to_arrow().to_pylist())) == (entry["version"], expected)
        if table.batch_id is not None and table.batch_id >= 0:
            assert open_table(stream, at_batch=table.batch_id).version == entry["version"]
    # The file of a version is a moment younger than the time in its history.
    now = datetime.now(UTC)
    for at_time in (now, now.replace(tzinfo=None), now.isoformat()):
        assert open_table(stream, at_time=at_time).version == DeltaTable(folder).version()


def test_a_reader_stays_at_its_version(own_stream: Bench) -> None:
    table = open_table(own_stream)
    before = sort_rows(table.to_arrow().to_pylist())
    engine = own_stream.open(epoch=99)
    own_stream.feed(engine, make_later_batch(0))
    assert sort_rows(table.to_arrow().to_pylist()) == before
    assert (
        sort_rows(open_table(own_stream).to_arrow().to_pylist()) == own_stream.rows("latest/stream") != before
    )


def make_later_batch(number: int) -> InputBatch:
    """The fifth batch with records, or a later one: a record of a new window in each partition."""
    at = 500 + 20 * number
    records = tuple(
        InputRecord(
            "records", partition, 5 + number, {"key": "a", "at": at, "value": number, "word": None}, None
        )
        for partition in (0, 1)
    )
    return InputBatch(4 + number, 1_000 + 10 * number, records)


def test_changes_are_the_rows_of_the_log_after_a_batch(stream: Bench) -> None:
    panes = stream.rows("panes/stream")
    for name in ("stream", "stream_log"):
        for since in (-1, 0, 3, 99):
            rows = open_table(stream, name).changes(since).to_pylist()
            assert sort_rows(rows) == [pane for pane in panes if pane["batch_id"] > since]
            order = [(row["batch_id"], row["kind"] == "insert") for row in rows]
            assert order == sorted(order)
    inserts = open_table(stream).changes(-1, columns=["key"], where="kind = 'insert'").to_pylist()
    assert sort_rows(inserts) == sort_rows([{"key": p["key"]} for p in panes if p["kind"] == "insert"])


def watch_live(stream: Bench, since: int | None, **selection: Any) -> list[BatchChanges]:
    """Watch a stream that takes two more batches, one while each poll waits, and then ends."""
    engine, clock_ms = stream.open(epoch=99), 0
    later_batches = iter([make_later_batch(0), make_later_batch(1)])

    def sleep(seconds: float) -> None:
        nonlocal clock_ms
        clock_ms += int(seconds * 1000)
        if (batch := next(later_batches, None)) is not None:
            stream.feed(engine, batch)

    options = WatchOptions(poll_interval_s=2, idle_timeout_s=10, clock=lambda: clock_ms, sleep=sleep)
    return list(open_table(stream).watch(since, options=options, **selection))


@pytest.mark.parametrize("since", [None, -1, 3])
def test_watch_follows_the_log_batch_by_batch(own_stream: Bench, since: int | None) -> None:
    newest = max(pane["batch_id"] for pane in own_stream.rows("panes/stream"))
    watched = watch_live(own_stream, since)
    panes = [
        p for p in own_stream.rows("panes/stream") if p["batch_id"] > (newest if since is None else since)
    ]
    assert [each.batch_id for each in watched] == sorted({pane["batch_id"] for pane in panes})
    assert max(each.batch_id for each in watched) > newest
    assert sort_rows([row for each in watched for row in each.rows.to_pylist()]) == sort_rows(panes)


def test_watch_has_the_selected_columns_and_rows(own_stream: Bench) -> None:
    watched = watch_live(own_stream, -1, columns=["key", "n"], where="key = 'a'")
    expected = [{"key": p["key"], "n": p["n"]} for p in own_stream.rows("panes/stream") if p["key"] == "a"]
    assert sort_rows([row for each in watched for row in each.rows.to_pylist()]) == sort_rows(expected) != []


def test_a_table_without_a_log_has_no_changes(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "latest/totals", pa.table({"batch_id": [1]}))
    table = penstock.open("totals", warehouse=str(tmp_path))
    with pytest.raises(QueryError, match=r'Add .write\("totals", mode="log"\) to its pipeline'):
        table.changes(0)


@pytest.fixture
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("polars", "duckdb", "pandas", "pyspark.sql"):
        monkeypatch.setitem(sys.modules, name, None)
    return


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("to_polars", "to_polars() needs the library polars. Install it: pip install polars"),
        ("to_pandas", "to_pandas() needs the library pandas. Install it: pip install pandas"),
        ("to_duckdb", "to_duckdb() needs the library duckdb. Install it: pip install 'penstock[duckdb]'"),
        ("spark", "spark() needs the library pyspark. Install it: pip install pyspark"),
    ],
)
def test_a_missing_library_is_named_with_its_package(
    stream: Bench, no_libraries: None, method: str, message: str
) -> None:
    with pytest.raises(MissingLibraryError) as missing:
        getattr(open_table(stream), method)()
    assert str(missing.value) == message


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"version": 1, "at_batch": 1}, "version, at_batch and at_time select the same thing"),
        ({"version": 999}, "table stream has no version 999, or no longer"),
        ({"at_time": "soon"}, "'soon' is neither the number of a batch nor a time"),
    ],
)
def test_an_impossible_selection_says_so(stream: Bench, selection: dict[str, Any], message: str) -> None:
    with pytest.raises(QueryError) as refusal:
        open_table(stream, **selection)
    assert str(refusal.value).startswith(message)


def test_unknown_names_get_the_nearest_one(stream: Bench) -> None:
    with pytest.raises(QueryError, match=r"there is no table 'strem'\. Did you mean 'stream'"):
        open_table(stream, "strem")
    with pytest.raises(QueryError, match=r"there is no column 'totl'\. Did you mean 'total'"):
        open_table(stream).to_arrow(columns=["totl"])
    with pytest.raises(QueryError, match=r"there is no column 'totl'\. Did you mean 'total'"):
        open_table(stream).to_arrow(where="totl > 1")


def test_a_reader_shows_its_table_and_batch(stream: Bench) -> None:
    assert repr(open_table(stream, "stream_late")).startswith('<stream_late at batch 4: "topic", "partition"')


def test_the_package_alone_imports_nothing_heavy() -> None:
    program = (
        "import sys, penstock; penstock.open; "
        "sys.exit(len({'pyarrow', 'deltalake', 'pydantic', 'polars'} & {*sys.modules}))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
