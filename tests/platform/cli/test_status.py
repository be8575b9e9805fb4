"""`penstock status`: rates, shares and notes of streams, in a terminal and elsewhere."""

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from tests.catalogs import PIPELINE_TEMPLATE, use_test_catalog

from penstock.core.clock import now_ms
from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord, DesiredRunState, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.infra.processes import ProcessManager, ProgramStatus
from penstock.platform.cli.live_view import CURSOR_HOME, ENTER_SCREEN, LEAVE_SCREEN
from penstock.platform.control import ControlStore, open_control_store

REASON = (
    "PoisonError: tax raised ZeroDivisionError in pybug.py:4, and "
    + "so on " * 40
    + "to the end\nsecond line"
)
COMMAND = [sys.executable, "-m", "penstock.platform.cli"]
ESCAPES = re.compile(r"\x1b\[[?0-9;]*[a-zA-Z]")


@pytest.fixture
def store(home: Path) -> Iterator[ControlStore]:
    """A store with a stream that has run for half an hour."""
    with closing(open_control_store(f"sqlite:///{home}/control.db")) as opened:
        now = now_ms()
        opened.set_desired_state("sensor_minute", DesiredRunState.RUNNING, 0)
        lease = opened.acquire_lease("sensor_minute", "host-a", now, 600_000)
        assert lease is not None
        opened.report_health(
            StreamHealth("sensor_minute", StreamState.RUNNING, "", now - 1_800_000, lease.epoch)
        )
        yield opened


def store_batch(store: ControlStore, number: int, committed_at_ms: int, **changes: object) -> None:
    account = PartitionAccount("sensors", 0, 0, 60, 60, 54, 3, 3, 0)
    record = {
        "stream": "sensor_minute",
        "batch_id": number,
        "epoch": 1,
        "kind": "data",
        "clock_ms": committed_at_ms,
        "watermark_ms": committed_at_ms - 10_000,
        "accounts": (account,),
        "lag_records": 12_345,
        "durations_ms": {"process": 100.0 + number},
        "committed_at_ms": committed_at_ms,
        **changes,
    }
    store.record_batch(BatchRecord(**record))  # type: ignore[arg-type]


def read_stream(run: Callable[..., object]) -> dict[str, object]:
    (stream,) = json.loads(run("status", "--json").out)["streams"]  # type: ignore[attr-defined]
    return dict(stream)


def test_rates_shares_and_batch_times_are_of_the_last_minute(run, store: ControlStore) -> None:
    now = now_ms()
    store_batch(store, 0, now - 600_000, durations_ms={"process": 99_000.0})
    for number in range(1, 21):
        store_batch(store, number, now - 40_000 + 1_000 * number)
    store_batch(store, 21, now, kind="tick", accounts=(), durations_ms={"process": 0.1})
    stream = read_stream(run)
    rates = stream["rates"]
    assert isinstance(rates, dict)
    assert rates["records_per_second"] == pytest.approx(20 * 60 / 60, rel=0.05)
    assert {name: rates[name] for name in ("batches", "records_read", "batch_ms_p50", "batch_ms_p99")} == {
        "batches": 20,
        "records_read": 1_200,
        "batch_ms_p50": 110.0,
        "batch_ms_p99": 120.0,
    }
    assert (rates["late_share"], rates["invalid_share"]) == (0.05, 0.05)
    assert stream["consumer_lag_records"] == 12_345
    assert stream["watermark_delay_seconds"] == pytest.approx(10, abs=5)
    header, row = run("status").out.splitlines()[2:4]
    assert header.split()[:4] == ["stream", "state", "rec/s", "p50"]
    assert row.split()[3:8] == ["110", "120", "5.0%", "5.0%", "12,345"]


def test_a_stream_that_just_started_has_the_rate_since_its_start(run, store: ControlStore) -> None:
    now = now_ms()
    store.report_health(StreamHealth("sensor_minute", StreamState.RUNNING, "", now - 6_000, 1))
    store_batch(store, 0, now)
    rates = read_stream(run)["rates"]
    assert isinstance(rates, dict)
    assert rates["interval_ms"] < 30_000


def test_a_batch_that_was_retried_for_35_minutes_was_committed_now(run, store: ControlStore) -> None:
    """Its clock is that of its intent; `status` showed the commit as 35 min ago."""
    now = now_ms()
    store_batch(store, 0, now, clock_ms=now - 35 * 60_000)
    assert re.search(r"committed [0-9.]+ s ago", run("status", "sensor_minute").out)


def test_a_long_reason_is_one_line_in_the_table_and_whole_on_the_page_of_the_stream(
    run, store: ControlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.report_health(StreamHealth("sensor_minute", StreamState.RETRYING, REASON, now_ms(), 1))
    monkeypatch.setattr("penstock.platform.cli.live_view.terminal_width", lambda: 80)
    table = run("status").out
    assert all(len(line) <= 80 for line in table.splitlines())
    assert "sensor_minute: PoisonError: tax raised ZeroDivisionError in pybug.py:4" in table
    assert "`penstock status NAME` shows a whole note." in table
    assert REASON in run("status", "sensor_minute").out


def test_a_stream_that_is_retried_is_not_healthy_although_a_host_has_it(run, store: ControlStore) -> None:
    assert read_stream(run)["healthy"] is True
    store.report_health(StreamHealth("sensor_minute", StreamState.RETRYING, REASON, now_ms(), 1))
    assert read_stream(run)["healthy"] is False
    assert run("status", "sensor_minute").code == 1


def test_status_fails_while_a_file_is_invalid_and_everything_runs(
    run, store: ControlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended with 0 below the message of an invalid file."""
    monkeypatch.chdir(tmp_path)
    program = ProgramStatus("host", "running", True, 1, 2, 0.0, 0, 0, "", tmp_path)
    monkeypatch.setattr(ProcessManager, "list_statuses", lambda _manager: [program])
    with use_test_catalog(tmp_path, monkeypatch) as write:
        write("sensor_minute.py", PIPELINE_TEMPLATE.format(name="sensor_minute"))
        assert run("status").code == 0
        write("broken.py", PIPELINE_TEMPLATE.format(name="broken").replace("sensors", "sensor"))
        table, data = run("status"), run("status", "--json")
    assert (table.code, data.code, json.loads(data.out)["healthy"]) == (1, 1, False)
    title, message = table.out.splitlines()[-2:]
    assert title == "1 invalid file (the other files are not affected):"
    assert message.startswith(
        "catalog/broken.py:4: read: there is no contract for 'sensor'. Did you mean 'sensors'?"
    )
    assert run("status", "sensor_minute").code == 0, "its own file is valid"


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("sensor_minut", 2, "there is no stream 'sensor_minut'. Did you mean 'sensor_minute'?"),
        ("visits", 2, "visits was never started. Start it with `penstock stream start visits`"),
    ],
)
def test_a_stream_that_is_not_there_is_named(
    run, store: ControlStore, name: str, code: int, message: str
) -> None:
    result = run("status", name)
    assert (result.code, message in result.err) == (code, True)


@pytest.mark.parametrize("columns", [80, 200])
def test_a_terminal_is_redrawn_in_place_until_ctrl_c(store: ControlStore, columns: int) -> None:
    store_batch(store, 0, now_ms())
    process_id, terminal = pty.fork()
    if process_id == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        os.execve(sys.executable, [*COMMAND, "status", "--watch"], environment)
    output = ""
    while output.count(CURSOR_HOME) < 2:
        output += os.read(terminal, 65_536).decode()
    os.write(terminal, b"\x03")
    while chunk := read_rest(terminal):
        output += chunk
    _, status = os.waitpid(process_id, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert output.startswith(ENTER_SCREEN)
    assert LEAVE_SCREEN in output
    frames = output[len(ENTER_SCREEN) :].partition(LEAVE_SCREEN)[0].split(CURSOR_HOME)[1:]
    lines = [ESCAPES.sub("", line).rstrip() for frame in frames for line in frame.splitlines()]
    assert max(map(len, lines)) <= columns
    assert any(line.startswith("sensor_minute") for line in lines)
    assert ("committed" in output) == (columns == 200), "what does not fit is left out"


def read_rest(terminal: int) -> str:
    try:
        return os.read(terminal, 65_536).decode()
    except OSError:  # the process has closed its terminal
        return ""


def test_another_output_gets_one_snapshot_after_another(store: ControlStore) -> None:
    store_batch(store, 0, now_ms())
    with subprocess.Popen(
        [*COMMAND, "status", "--watch", "--json"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        documents = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGINT)
    assert process.returncode == 0
    assert [document["streams"][0]["stream"] for document in documents] == ["sensor_minute"] * 2
