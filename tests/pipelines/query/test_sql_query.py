"""SQL over the tables of a stream, compared with answers that Python computes from the panes."""

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, run_batches
from tests.pipelines.engine.tables.test_which_rows_count import QUERIES

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.storage import StoragePath
from penstock.query.errors import QueryError, QueryTimeoutError, StatementError
from penstock.query.sql_query import QueryOptions, run_query
from penstock.query.table_names import list_table_names
from penstock.query.table_versions import AtBatch, AtTime

WINDOW = ("key", "window_start", "window_end")
LAST_BATCH = 5


def ask(stream: Bench, statement: str, options: QueryOptions | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run_query(stream.warehouse, statement, options).read_all().to_pylist()
    return sorted(rows, key=repr)


def find_current_rows(stream: Bench, batch_id: int) -> list[dict[str, Any]]:
    """The last insert of each window up to a batch, unless a retraction follows, without the kind."""
    last_by_window: dict[tuple[Any, ...], dict[str, Any]] = {}
    panes = [pane for pane in stream.rows("panes/stream") if pane["batch_id"] <= batch_id]
    for pane in sorted(panes, key=lambda pane: (pane["batch_id"], pane["kind"] == "insert")):
        last_by_window[tuple(pane[name] for name in WINDOW)] = pane
    current = [pane for pane in last_by_window.values() if pane["kind"] == "insert"]
    return sorted(({k: v for k, v in pane.items() if k != "kind"} for pane in current), key=repr)


def test_each_table_has_a_name(stream: Bench) -> None:
    assert list_table_names(stream.warehouse) == {
        "records_quarantine": "quarantine/records",
        "stream": "latest/stream",
        "stream_late": "late/stream",
        "stream_ledger": "ledger/stream",
        "stream_log": "panes/stream",
    }
    for name, path in list_table_names(stream.warehouse).items():
        assert ask(stream, f"SELECT * FROM {name}") == stream.rows(path)


def test_a_plain_name_has_the_current_rows(stream: Bench) -> None:
    assert ask(stream, "SELECT * FROM stream") == find_current_rows(stream, LAST_BATCH)


@pytest.mark.parametrize("batch_id", range(LAST_BATCH + 1))
def test_a_table_is_read_as_of_a_batch(stream: Bench, batch_id: int) -> None:
    expected = find_current_rows(stream, batch_id)
    assert ask(stream, "SELECT * FROM stream;", QueryOptions(AtBatch(batch_id))) == expected
    assert ask(stream, f'SELECT * FROM "stream@{batch_id}"') == expected


def test_two_versions_are_compared_in_one_query(stream: Bench) -> None:
    changed = ask(stream, 'SELECT key, total FROM stream EXCEPT SELECT key, total FROM "stream@2"')
    before, after = (
        {(row["key"], row["total"]) for row in find_current_rows(stream, batch_id)}
        for batch_id in (2, LAST_BATCH)
    )
    assert {(row["key"], row["total"]) for row in changed} == after - before != set()


def test_a_table_is_read_as_of_a_time(stream: Bench) -> None:
    history = DeltaTable(Path(str(stream.warehouse)) / "latest/stream").history()
    time_ms = history[len(history) // 2]["timestamp"]
    version = max(entry["version"] for entry in history if entry["timestamp"] <= time_ms)
    table = DeltaTable(Path(str(stream.warehouse)) / "latest/stream", version)
    expected = sorted(table.to_pyarrow_table().to_pylist(), key=repr)
    time = datetime.fromtimestamp(time_ms / 1000, UTC)
    assert ask(stream, "SELECT * FROM stream", QueryOptions(AtTime(time))) == expected
    assert ask(stream, f'SELECT * FROM "stream@{time.isoformat()}"') == expected


def test_a_table_is_read_as_of_the_time_of_a_commit_and_not_of_its_file(stream: Bench) -> None:
    """Files have later times than commits: by a little on a busy machine, and by days in a copy."""
    folder = Path(str(stream.warehouse)) / "latest/stream"
    history = DeltaTable(folder).history()
    for entry in (folder / "_delta_log").glob("*.json"):
        os.utime(entry, (4e9, 4e9))
    for commit in history:
        version = max(other["version"] for other in history if other["timestamp"] <= commit["timestamp"])
        expected = sorted(DeltaTable(folder, version).to_pyarrow_table().to_pylist(), key=repr)
        time = datetime.fromtimestamp(commit["timestamp"] / 1000, UTC)
        assert ask(stream, "SELECT * FROM stream", QueryOptions(AtTime(time))) == expected


def test_groups_and_joins_are_those_of_python(stream: Bench) -> None:
    by_key: dict[str, int] = {}
    for row in stream.rows("latest/stream"):
        by_key[row["key"]] = by_key.get(row["key"], 0) + row["n"]
    assert ask(stream, "SELECT key, sum(n) AS n FROM stream GROUP BY key") == sorted(
        ({"key": key, "n": n} for key, n in by_key.items()), key=repr
    )
    keys = {row["key"] for row in stream.rows("latest/stream")} & {
        row["key"] for row in stream.rows("late/stream")
    }
    joined = ask(stream, "SELECT DISTINCT s.key FROM stream s JOIN stream_late l ON s.key = l.key")
    assert {row["key"] for row in joined} == keys != set()


def test_the_queries_of_the_page_run(stream: Bench) -> None:
    """Their answers are compared in `test_which_rows_count.py`; here they run with the engine of `penstock sql`."""
    current_rows, sum_of_changes, _, unbalanced_batches = (
        query.replace("sensor_minute", "stream").replace("device", "key").replace("readings", "n")
        .replace("temperature", "most")
        for query in QUERIES
    )  # fmt: skip
    latest = ask(stream, "SELECT key, window_start, most, n FROM stream")
    assert ask(stream, current_rows) == latest
    assert ask(stream, sum_of_changes) == ask(stream, "SELECT key, sum(n) AS n FROM stream GROUP BY key")
    assert ask(stream, unbalanced_batches) == []


def test_tables_in_an_object_store_are_read_alike(
    somewhere: StoragePath, tmp_path: Path, stream: Bench
) -> None:
    bench = Bench(PLAN, tmp_path / "bench", table_root=somewhere)
    run_batches(bench)
    assert ask(bench, "SELECT * FROM stream WHERE n > 1", QueryOptions(AtBatch(4))) == [
        row for row in find_current_rows(stream, 4) if row["n"] > 1
    ]


def remove_last_commit(stream: Bench, path: str) -> None:
    """Take the newest commit out of a table, as if it had not been made yet."""
    log = stream.folder / "warehouse" / path / "_delta_log"
    max(log.glob("*.json")).unlink()


JOIN = "SELECT max(s.batch_id) AS latest, max(l.batch_id) AS log FROM stream s, stream_log l"


def test_a_batch_that_is_not_in_all_tables_yet_is_in_none(own_stream: Bench) -> None:
    journal = BatchJournal(own_stream.folder / "stream" / "journal")
    options = QueryOptions(find_changes=lambda _, batch_id: journal.read_outcome(batch_id).changes)
    newest = max(row["batch_id"] for row in own_stream.rows("panes/stream"))
    assert ask(own_stream, JOIN, options) == [{"latest": newest, "log": newest}]
    remove_last_commit(own_stream, "latest/stream")
    before = max(row["batch_id"] for row in own_stream.rows("panes/stream") if row["batch_id"] < newest)
    assert ask(own_stream, JOIN, options) == [{"latest": before, "log": before}]
    assert ask(own_stream, "SELECT max(batch_id) AS log FROM stream_log", options) == [{"log": newest}]


def test_a_table_without_rows_in_the_newest_batch_holds_nothing_back(stream: Bench) -> None:
    newest, newest_invalid = (
        max(r["batch_id"] for r in stream.rows(p)) for p in ("panes/stream", "quarantine/records")
    )
    assert newest_invalid < newest
    journal = BatchJournal(stream.folder / "stream" / "journal")
    options = QueryOptions(find_changes=lambda _, batch_id: journal.read_outcome(batch_id).changes)
    (answer,) = ask(
        stream, "SELECT max(s.batch_id) AS newest FROM stream_log s, records_quarantine q", options
    )
    assert answer == {"newest": newest}


def test_an_answer_names_the_tables_and_their_batches(stream: Bench) -> None:
    answer = run_query(stream.warehouse, 'SELECT count(*) FROM stream, "stream_log@2"')
    batches = [row["batch_id"] for row in stream.rows("panes/stream")]
    newest, newest_until_2 = max(batches), max(batch for batch in batches if batch <= 2)
    expected = f"stream at batch {newest}, stream_log@2 at batch {newest_until_2}"
    assert answer.describe_snapshots() == expected


INVALID = {
    "SELECT * FROM strem": "there is no table 'strem'. Did you mean 'stream'?",
    "SELECT * FROM stream_quarantine": "there is no table 'stream_quarantine'. Did you mean",
    "SELECT totals FROM stream": "there is no column 'totals'. Did you mean 'total'?",
    "SELECT s.totl FROM stream s": "there is no column 'totl'. Did you mean 'total'?",
    "SELECT * FROM latest.stream": "there is no table latest.stream. Names have no schema",
    'SELECT * FROM "stream@soon"': "'soon' is neither the number of a batch nor a time",
    "SELECT * FROM stream WHERE": "the statement is not valid SQL",
    "SELECT median_of(n) FROM stream": "the statement failed: Error during planning: Invalid function 'median_of'",
    "SELECT n / 0 FROM stream": "the statement failed: External error: Arrow error: Divide by zero",
    "SELECT 1; SELECT 2": "the statement failed: This feature is not implemented",
    "": "the statement is empty",
    "-- only a comment": "the statement is empty",
    "SELCT 1": "'SELCT' is not the start of a query",
}


@pytest.mark.parametrize("statement", INVALID)
def test_an_invalid_statement_gets_one_line(stream: Bench, statement: str) -> None:
    with pytest.raises(QueryError) as refusal:
        ask(stream, statement)
    assert str(refusal.value).startswith(INVALID[statement])
    assert "\n" not in str(refusal.value)


FORBIDDEN = [
    "COPY (SELECT 1) TO '{file}' STORED AS csv",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{file}' STORED AS csv",
    "explain /* a */ analyze verbose copy (SELECT 1) TO '{file}' STORED AS csv",
    "-- SELECT\nCOPY (SELECT 1) TO '{file}' STORED AS csv",
    "WITH a AS (COPY (SELECT 1) TO '{file}' STORED AS csv) SELECT 1",
    "CREATE EXTERNAL TABLE t STORED AS csv LOCATION '{secret}'",
    "SELECT * FROM '{secret}'",
    "SELECT * FROM read_csv('{secret}')",
    'SELECT * FROM "../outside/table"',
    'SELECT * FROM "../outside/table_log"',
    "INSERT INTO stream SELECT * FROM stream",
    "WITH a AS (SELECT 1) INSERT INTO stream SELECT * FROM stream",
    "WITH a AS (SELECT 1) DELETE FROM stream",
    "DELETE FROM stream",
    "DROP TABLE stream",
    "SET datafusion.execution.batch_size = 1",
    "SELECT 1; DROP TABLE stream",
]


@pytest.mark.parametrize("statement", FORBIDDEN)
def test_a_statement_changes_nothing_and_reads_no_other_files(
    own_stream: Bench, tmp_path: Path, statement: str
) -> None:
    secret, file = tmp_path / "secret.csv", tmp_path / "written.csv"
    secret.write_text("a\n1\n", "utf-8")
    write_deltalake(tmp_path / "outside/table", pa.table({"a": [1]}))
    before = own_stream.rows("latest/stream")
    with pytest.raises(QueryError):
        ask(own_stream, statement.format(file=file, secret=secret))
    assert not file.exists()
    assert own_stream.rows("latest/stream") == before


def test_a_log_without_current_rows_says_so(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "panes/alerts", pa.table({"a": [1]}))
    with pytest.raises(
        QueryError, match=r"no table has the current rows of 'alerts'\. Its log is 'alerts_log'"
    ):
        run_query(tmp_path, "SELECT * FROM alerts")


def test_a_version_that_was_removed_is_not_read(own_stream: Bench) -> None:
    folder = own_stream.folder / "warehouse/latest/stream"
    table = DeltaTable(folder)
    table.create_checkpoint()
    for commit in sorted((folder / "_delta_log").glob("*.json"))[:-1]:
        commit.unlink()
    assert ask(own_stream, "SELECT * FROM stream") == find_current_rows(own_stream, LAST_BATCH)
    with pytest.raises(QueryError, match="can no longer be read as of batch 1: maintenance removed"):
        ask(own_stream, 'SELECT * FROM "stream@1"')
    with pytest.raises(QueryError, match="cannot be read as of 2020-01-01"):
        ask(own_stream, 'SELECT * FROM "stream@2020-01-01"')


def test_a_table_with_several_writers_has_no_batch(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "quarantine/records", pa.table({"a": [1]}))
    with pytest.raises(QueryError, match="has no single writer, so a batch does not identify a version"):
        run_query(tmp_path, 'SELECT * FROM "records_quarantine@1"')


NUMBERS = "(SELECT row_number() OVER () AS n FROM stream_log a, stream_log b, stream_log c, stream_log d)"


def test_rows_are_limited_and_the_answer_says_so(stream: Bench) -> None:
    answer = run_query(stream.warehouse, "SELECT * FROM stream", QueryOptions(max_rows=2))
    assert (answer.read_all().num_rows, answer.is_cut) == (2, True)
    count = len(stream.rows("latest/stream"))
    answer = run_query(stream.warehouse, "SELECT * FROM stream", QueryOptions(max_rows=count))
    assert (answer.read_all().num_rows, answer.is_cut) == (count, False)


def test_a_query_that_takes_longer_than_its_limit_ends(stream: Bench) -> None:
    endless = f"SELECT count(*) FROM {NUMBERS} x, {NUMBERS} y, {NUMBERS} z WHERE x.n * y.n + z.n = 7"
    with pytest.raises(QueryTimeoutError, match=r"longer than 0.05 s. Restrict it with WHERE"):
        run_query(stream.warehouse, endless, QueryOptions(time_limit_s=0.05)).read_all()


def test_rows_that_are_not_read_are_not_computed_ahead(stream: Bench) -> None:
    answer = run_query(stream.warehouse, f"SELECT * FROM {NUMBERS}", QueryOptions(max_rows=1))
    assert answer.read_all().num_rows == 1
    with pytest.raises(StatementError):
        run_query(stream.warehouse, "SELECT")
