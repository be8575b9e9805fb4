"""`penstock logs`: filters by stream, level and time, and folded stack traces."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.pipelines.engine.definition.test_user_tracebacks import SPARK_TEXT

from penstock.platform.log_reading.log_parser import parse_header, parse_lines

NOW = datetime.now(UTC).replace(microsecond=0)
EARLIER = NOW - timedelta(hours=1)

SPARK_LINES = "\n".join(
    [
        f"{NOW:%Y-%m-%d %H:%M:%S} ERROR Executor: Exception in task 0.0 in stage 3.0",
        *SPARK_TEXT.splitlines()[1:],
    ]
)
HOST_LOG = f"""WARNING: Using incubator modules: jdk.incubator.vector
{EARLIER:%Y-%m-%d %H:%M:%S},100 INFO    [orders] Stream running
{EARLIER:%Y-%m-%d %H:%M:%S},200 WARNING [pybug 0] Record breaks user code
{SPARK_LINES}
{NOW:%Y-%m-%d %H:%M:%S},300 ERROR   [pybug] Stream failed at batch 0
Traceback of user code:
  orders.py:4, in tax
{NOW:%Y-%m-%d %H:%M:%S},400 WARNING [orders 7] Lease lost; fencing writer
"""


@pytest.fixture
def log_folder(home: Path) -> Path:
    folder = home / "logs"
    folder.mkdir(parents=True)
    (folder / "host.log").write_text(HOST_LOG, "utf-8")
    return folder


@pytest.mark.usefixtures("log_folder")
def test_entries_of_a_stream_and_level_are_selected(run) -> None:
    lines = run("logs", "--stream", "pybug", "--level", "warning").out.splitlines()
    assert [line.partition("[")[2] for line in lines if "[" in line] == [
        "pybug 0] Record breaks user code",
        "pybug] Stream failed at batch 0",
    ]
    assert lines[-2:] == ["host       Traceback of user code:", "host         orders.py:4, in tax"]


@pytest.mark.usefixtures("log_folder")
def test_entries_since_a_duration_or_a_time_are_selected(run) -> None:
    since_import = datetime.now(UTC) - NOW  # minutes, in a long run
    ten_minutes_earlier = f"{int(since_import.total_seconds()) + 600}s"
    assert "Stream running" not in run("logs", "--since", ten_minutes_earlier).out
    assert "Lease lost" in run("logs", "--since", ten_minutes_earlier).out
    assert "Stream running" in run("logs", "--since", f"{EARLIER:%Y-%m-%dT%H:%M:%S}").out
    refused = run("logs", "--since", "yesterday")
    assert refused.code == 2
    assert "10m" in refused.err


@pytest.mark.usefixtures("log_folder")
def test_a_stack_trace_of_scala_is_one_line_with_the_line_of_user_code(run) -> None:
    folded = run("logs", "--level", "error").out
    assert "PythonRunner.scala" not in folded
    assert "test_user_tracebacks.py:9: ZeroDivisionError: division by zero (" in folded
    assert "PythonRunner.scala" in run("logs", "--level", "error", "--full").out


def test_json_entries_are_printed_as_lines(run, log_folder: Path) -> None:
    entry = {
        "at": NOW.isoformat(),
        "level": "error",
        "logger": "penstock",
        "message": "Stream failed",
        "stream": "a",
    }
    (log_folder / "host.log").write_text(json.dumps({**entry, "batch": 3}) + "\n{not json\n", "utf-8")
    assert run("logs", "--stream", "a").out == (
        f"host       {NOW:%Y-%m-%d %H:%M:%S} ERROR   [a 3] Stream failed\nhost       {{not json\n"
    )


def test_rotated_logs_are_read_first_and_colors_are_for_terminals(run, log_folder: Path) -> None:
    (log_folder / "host.log.1").write_text("older\n", "utf-8")
    (log_folder / "host.log").write_text("\x1b[32mnewer\x1b[0m\n", "utf-8")
    assert run("logs", "host").out == "host       older\nhost       newer\n"


@pytest.mark.parametrize(
    ("line", "level", "stream"),
    [
        ("2026-11-20T04:43:52.469Z INFO  Broker: [Broker id=1] Starting", "info", None),
        (
            "\x1b[32m2026-11-20 04:43:52 +0000\x1b[0m - dagster.daemon - \x1b[34mERROR\x1b[0m - x",
            "error",
            None,
        ),
        ("2026-11-20 04:43:52,140 CRIT Supervisor is running as root", "critical", None),
        ("2026-11-20 04:43:52 WARN  Executor: slow", "warning", None),
        ("2026-11-20 04:43:52,842 INFO    [archive-sensors 4] Stream running", "info", "archive-sensors"),
    ],
    ids=["kafka", "dagster", "supervisord", "spark", "host"],
)
def test_the_formats_of_all_programs_are_known(line: str, level: str, stream: str | None) -> None:
    entry = parse_header(line)
    assert entry is not None
    assert (entry.level, entry.stream) == (level, stream)
    assert entry.at_ms is not None
    assert entry.at_ms // 1000 == int(datetime(2026, 11, 20, 4, 43, 52, tzinfo=UTC).timestamp())


def test_a_log_without_known_headers_has_an_entry_for_each_line() -> None:
    assert [entry.first_line for entry in parse_lines(["one", "two"])] == ["one", "two"]
