"""`penstock sql`: formats, files, limits, and the interactive session."""

import csv
import io
import json
import shlex
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from tests.platform.cli.conftest import RunCommand

from penstock.platform.cli.sql_session import SqlSession
from penstock.query.sql_query import QueryOptions

START = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
ROWS = [
    {"device": "a", "mean": 1.5, "window_start": START, "tags": ["x"], "raw": b"\xff\x00"},
    {"device": None, "mean": float("nan"), "window_start": START, "tags": [], "raw": b"text"},
]
QUERY = "SELECT * FROM sensor_minute ORDER BY device"


@pytest.fixture
def warehouse(home: Path) -> Path:
    write_deltalake(home / "warehouse/latest/sensor_minute", pa.Table.from_pylist(ROWS))
    write_deltalake(home / "warehouse/late/sensor_minute", pa.table({"missed_by_ms": [7]}))
    return home / "warehouse"


def test_a_query_prints_a_table(run: RunCommand, warehouse: Path) -> None:
    printed = run("sql", "SELECT device, mean, window_start FROM sensor_minute WHERE device = 'a'")
    assert (printed.code, printed.out.splitlines()) == (
        0,
        ["device  mean   window_start", "a       1.500  2026-01-31 12:00:00"],
    )


def test_json_csv_and_json_lines_have_the_same_rows(run: RunCommand, warehouse: Path) -> None:
    expected = [
        {
            "device": "a",
            "mean": 1.5,
            "window_start": "2026-01-31T12:00:00+00:00",
            "tags": ["x"],
            "raw": "0xff00",
        },
        {
            "device": None,
            "mean": "NaN",
            "window_start": "2026-01-31T12:00:00+00:00",
            "tags": [],
            "raw": "text",
        },
    ]
    assert json.loads(run("sql", QUERY, "--format", "json").out) == expected
    lines = run("sql", QUERY, "--format", "jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == expected
    rows = list(csv.DictReader(io.StringIO(run("sql", QUERY, "--format", "csv").out)))
    assert rows == [
        {**expected[0], "mean": "1.5", "tags": '["x"]'},
        {**expected[1], "device": "", "mean": "nan", "tags": "[]"},
    ]
    assert json.loads(run("sql", "SELECT 1 AS a WHERE false", "--format", "json").out) == []


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl"])
def test_an_answer_goes_to_a_new_file_in_the_format_of_its_ending(
    run: RunCommand, warehouse: Path, tmp_path: Path, ending: str
) -> None:
    file = tmp_path / f"answer.{ending}"
    assert run("sql", QUERY, "--output", str(file)).code == 0
    if ending == "parquet":
        assert pq.read_table(file).column("device").to_pylist() == ["a", None]
    else:
        assert file.read_text("utf-8") == run("sql", QUERY, "--format", ending).out
    again = run("sql", QUERY, "--output", str(file))
    assert (again.code, again.err) == (
        2,
        f"penstock: {file} exists. Name another file, or remove it first\n",
    )


def test_a_file_with_an_unknown_ending_needs_a_format(
    run: RunCommand, warehouse: Path, tmp_path: Path
) -> None:
    refused = run("sql", QUERY, "--output", str(tmp_path / "answer.xls"))
    assert refused.code == 2
    assert "the ending names no format. Use one of .csv, .json" in refused.err
    assert run("sql", QUERY, "--output", str(tmp_path / "answer.txt"), "--format", "table").code == 0
    assert (tmp_path / "answer.txt").read_text("utf-8").startswith("device\tmean\t")


def test_an_answer_that_is_cut_says_so(run: RunCommand, warehouse: Path) -> None:
    printed = run("sql", QUERY, "--format", "jsonl", "--limit", "1")
    assert len(printed.out.splitlines()) == 1
    assert printed.err == "There are more rows than the limit; set --limit to see them.\n"


def test_a_statement_comes_from_the_standard_input(
    run: RunCommand, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 6 * 7 AS answer;\n"))
    assert run("sql", "--format", "jsonl").out == '{"answer": 42}\n'


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["SELECT * FROM sensor_minut"], "there is no table 'sensor_minut'. Did you mean 'sensor_minute'?"),
        (["SELECT devise FROM sensor_minute"], "there is no column 'devise'. Did you mean 'device'?"),
        (["DROP TABLE sensor_minute"], "'DROP' is not the start of a query"),
        ([QUERY, "--at-batch", "1", "--at-time", "2026-01-01"], "select the same thing"),
        ([QUERY, "--at-time", "yesterday"], "'yesterday' is neither the number of a batch nor a time"),
        ([QUERY, "--timeout", "soon"], "'soon'"),
    ],
)
def test_a_mistake_gets_one_line_and_exit_code_2(
    run: RunCommand, warehouse: Path, arguments: list[str], message: str
) -> None:
    refused = run("sql", *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert message in refused.err.splitlines()[-1]


def make_input(*lines: str) -> Callable[[str], str]:
    """Return a stand-in for `input` that returns these lines, then ends."""
    remaining = list(lines)

    def read_line(_prompt: str) -> str:
        if not remaining:
            raise EOFError
        if remaining[0] == "^C":
            remaining.pop(0)
            raise KeyboardInterrupt
        return remaining.pop(0)

    return read_line


@pytest.fixture
def session(warehouse: Path, home: Path) -> SqlSession:
    return SqlSession(warehouse, home / "sql_history", QueryOptions(), "table")


def test_a_session_runs_statements_until_its_end(
    session: SqlSession, capsys: pytest.CaptureFixture[str]
) -> None:
    session.run(
        make_input(
            "SELECT device", "FROM sensor_minute", "WHERE device = 'a';", "SELECT x", "^C", "SELECT 7 AS n;"
        )
    )
    lines = capsys.readouterr().out.split("\n")
    assert lines[1:] == ["device", "a", "sensor_minute at version 0", "", "n", "7", "", "", ""]


def test_an_error_does_not_end_a_session(session: SqlSession, capsys: pytest.CaptureFixture[str]) -> None:
    session.run(make_input("SELECT * FROM sensor_minut;", "SELECT 7 AS n;", "\\q", "SELECT 8 AS n;"))
    printed = capsys.readouterr()
    assert printed.err == "there is no table 'sensor_minut'. Did you mean 'sensor_minute'?\n"
    assert "7" in printed.out
    assert "8" not in printed.out


def test_a_session_lists_tables_and_columns(session: SqlSession, capsys: pytest.CaptureFixture[str]) -> None:
    session.run(make_input("\\d", "\\d sensor_minute_late", "\\?"))
    printed = capsys.readouterr().out
    assert "sensor_minute_late  late/sensor_minute" in printed
    assert "missed_by_ms  long" in printed
    assert "leave, as Ctrl-D does" in printed


def test_a_session_completes_tables_columns_and_keywords(session: SqlSession) -> None:
    assert session.complete("sen", "SELECT * FROM sen") == ["sensor_minute", "sensor_minute_late"]
    assert session.complete("dev", "SELECT * FROM sensor_minute WHERE dev") == ["device"]
    assert session.complete("GRO", "GRO") == session.complete("gro", "gro") == ["GROUP BY"]


PAGE = (Path(__file__).parents[3] / "pipelines/docs/querying.md").read_text("utf-8")
COMMANDS = [
    shlex.split(line)[1:]
    for line in PAGE.splitlines()
    if line.startswith("penstock sql ") and "output" not in line
]


@pytest.mark.parametrize("arguments", COMMANDS, ids=lambda arguments: arguments[1])
def test_the_commands_of_the_page_run(run: RunCommand, home: Path, arguments: list[str]) -> None:
    for table, column in (("latest/sensor_minute", "device"), ("quarantine/sensors", "reason")):
        write_deltalake(home / "warehouse" / table, pa.table({column: ["x"], "temperature": [20.0]}))
    printed = run(*arguments)
    assert (printed.code, printed.err) == (0, "")
    assert "x" in printed.out
