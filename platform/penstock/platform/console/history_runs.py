"""The replays and upgrades that this console has started: what each does, and how it ended."""

import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import msgspec

from penstock.platform.console.history_worker import HistoryOrder
from penstock.platform.errors import HistoryRunningError

MAX_LINES = 60
STOP_TIMEOUT_S = 10.0
WORKER = (sys.executable, "-m", "penstock.platform.console.history_worker")


@dataclass
class HistoryRun:
    """A replay or an upgrade: its newest lines, and its exit code once it has ended."""

    order: HistoryOrder
    user: str
    started_at_ms: int
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LINES))
    ended_at_ms: int | None = None
    exit_code: int | None = None

    @property
    def kind(self) -> str:
        """What runs, as the command names it."""
        return self.order.kind

    @property
    def state(self) -> str:
        """The state in a word."""
        if self.exit_code is None:
            return "running"
        return "failed" if self.exit_code else "done"

    @property
    def newest_lines(self) -> list[str]:
        """The newest lines, as of now."""
        return list(self.lines)


class HistoryRuns:
    """Starts at most one replay or upgrade of a stream, each in a process that ends with the console."""

    def __init__(self, logs: Path, clock: Callable[[], int]) -> None:
        self._logs, self._clock = logs, clock
        self._lock = threading.Lock()
        self._runs: dict[str, HistoryRun] = {}
        self._processes: dict[str, subprocess.Popen[str]] = {}

    def find(self, stream: str) -> HistoryRun | None:
        """Return the newest run of a stream; None if this console has started none."""
        return self._runs.get(stream)

    def start(self, order: HistoryOrder, user: str) -> HistoryRun:
        """Start a run. Raises HistoryRunningError while another one of the stream runs."""
        with self._lock:
            self.refuse_running(order.stream)
            run = HistoryRun(order, user, self._clock())
            self._logs.mkdir(parents=True, exist_ok=True)
            with (self._logs / "console-history.log").open("ab") as log:
                process = subprocess.Popen(
                    WORKER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
                )
            self._runs[order.stream], self._processes[order.stream] = run, process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(msgspec.json.encode(order).decode())
        process.stdin.close()
        threading.Thread(
            target=self._follow,
            args=(run, process, process.stdout),
            name=f"history-{order.stream}",
            daemon=True,
        ).start()
        return run

    def refuse_running(self, stream: str) -> None:
        """Raise HistoryRunningError if a run of a stream has not ended."""
        run = self._runs.get(stream)
        if run is not None and run.exit_code is None:
            raise HistoryRunningError(
                f"A {run.kind} of {stream} is running since {run.user} started it. Wait until it has ended"
            )

    def close(self) -> None:
        """Stop what runs. A replay that is stopped can be continued under its name."""
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()

    def _follow(self, run: HistoryRun, process: subprocess.Popen[str], output: IO[str]) -> None:
        with output:
            for line in output:
                run.lines.append(line.rstrip("\n"))
        exit_code = process.wait()
        run.ended_at_ms = self._clock()
        run.exit_code = exit_code
