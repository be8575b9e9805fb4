"""`penstock top`: streams by a figure, steered by keys in a terminal, and printed once elsewhere."""

import fcntl
import os
import pty
import struct
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from penstock.core.clock import now_ms
from penstock.engine.batch.accounts import PartitionAccount
from penstock.engine.host.control import BatchRecord, DesiredRunState, StreamHealth
from penstock.engine.host.stream_state import StreamState
from penstock.platform.cli.live_view import CURSOR_HOME, LEAVE_SCREEN
from penstock.platform.control import ControlStore, open_control_store

STREAMS = {"busy": (600, 10, 1_000), "idle": None, "lagging": (60, 90_000, 5_000), "slow": (6, 0, 700_000)}
"""Of each stream the records of its batch, its lag, and how far its watermark is behind."""


@pytest.fixture
def store(home: Path) -> Iterator[ControlStore]:
    now = now_ms()
    with closing(open_control_store(f"sqlite:///{home}/control.db")) as opened:
        for name, figures in STREAMS.items():
            opened.set_desired_state(name, DesiredRunState.RUNNING, 0)
            lease = opened.acquire_lease(name, "host-a", now, 600_000)
            assert lease is not None
            opened.report_health(StreamHealth(name, StreamState.RUNNING, "", now - 1_800_000, lease.epoch))
            if figures is not None:
                read, lag, delay_ms = figures
                account = PartitionAccount("sensors", 0, 0, read, read, read, 0, 0, 0)
                opened.record_batch(
                    BatchRecord(
                        *(name, 0, 1, "data", now, now - delay_ms, (account,)),
                        lag_records=lag,
                        durations_ms={"process": 100.0},
                        committed_at_ms=now,
                    )
                )
        yield opened


@pytest.mark.parametrize(
    ("order", "names"),
    [
        ("lag", ["lagging", "busy", "slow", "idle"]),
        ("rate", ["busy", "lagging", "slow", "idle"]),
        ("delay", ["slow", "lagging", "busy", "idle"]),
        ("late", ["busy", "lagging", "slow", "idle"]),
        ("name", ["busy", "idle", "lagging", "slow"]),
    ],
)
def test_a_pipe_gets_the_streams_once_in_their_order(
    run: Callable, store: ControlStore, order: str, names: list[str]
) -> None:
    lines = run("top", "--sort", order).out.splitlines()
    assert lines[0].startswith("4 of 4 streams running, ")
    assert "lag 90,010, longest delay " in lines[0]
    assert lines[1] == f"sorted by {order}"
    assert [line.split()[0] for line in lines[4:8]] == names


def test_without_a_stream_it_says_so(run: Callable) -> None:
    assert run("top").out == "no stream has been started\n"


def test_keys_sort_and_quit(store: ControlStore) -> None:
    process_id, terminal = pty.fork()
    if process_id == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 160, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        os.execve(sys.executable, [sys.executable, "-m", "penstock.platform.cli", "top"], environment)
    output = read_until(terminal, "sorted by lag")
    os.write(terminal, b"s")
    output += read_until(terminal, "sorted by rate")
    os.write(terminal, b"x")  # a key without a meaning
    output += read_until(terminal, "sorted by rate")
    os.write(terminal, b"q")
    output += read_until(terminal, LEAVE_SCREEN)
    drain(terminal)
    _, status = os.waitpid(process_id, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    frames = output.split(CURSOR_HOME)[1:]
    assert "lagging" in frames[0].splitlines()[4]
    assert "busy" in frames[-1].splitlines()[4]


def read_until(terminal: int, text: str) -> str:
    output = ""
    while text not in output:
        output += os.read(terminal, 65_536).decode()
    return output


def drain(terminal: int) -> None:
    try:
        while os.read(terminal, 65_536):
            pass
    except OSError:  # the process has closed its terminal
        pass
