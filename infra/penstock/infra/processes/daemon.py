"""supervisord and the tether that keeps it: found, started, ended.

Who lives is asked of the kernel (who holds the lock), so there is no pid file that could be stale.
"""

import fcntl
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from penstock.infra.errors import ManagerError, NotInTimeError
from penstock.infra.processes.client import Supervisor
from penstock.infra.processes.layout import Layout
from penstock.infra.processes.rendering import MANAGER, MANAGER_STOP_SECONDS, SUPERVISORD, TETHER, keeper_spec
from penstock.infra.tether_spec import TetherState
from penstock.infra.waiting import wait_until

START_SECONDS = 20.0
HANGING_SECONDS = 5.0
"""A manager that lives and has not answered for so long is replaced."""

KEEPER_SECONDS = MANAGER_STOP_SECONDS + 15.0
"""A keeper stops supervisord within the first part, and has the rest to end what is left by force."""

GONE_SECONDS = 10.0
_FLOCK = "hhqqi"


class Daemon:
    """The manager's processes of one layout."""

    def __init__(self, layout: Layout, supervisor: Supervisor) -> None:
        self._layout = layout
        self._supervisor = supervisor

    def keeper(self) -> int | None:
        """Return the pid of the tether that keeps supervisord; None when there is none."""
        try:
            with self._layout.lock.open("rb+") as file:
                asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, _, _, _, pid = struct.unpack(_FLOCK, fcntl.fcntl(file, fcntl.F_GETLK, asked))
        except FileNotFoundError:
            return None
        return None if kind == fcntl.F_UNLCK else pid

    def start(self) -> None:
        """Have supervisord answering. One that lives and does not answer is ended first."""
        if self.keeper() is not None and not self._answers_in_time(HANGING_SECONDS):
            self.end()
        if self.keeper() is None:
            self._end(self._strays())
            self._launch()
            if not self._answers_in_time(START_SECONDS):
                said = _tail(self._layout.log)
                self.end()
                raise ManagerError(
                    f"The process manager did not start within {START_SECONDS:g} s. "
                    f"The end of {self._layout.log}:\n{said}"
                )

    def end(self, seconds: float = KEEPER_SECONDS) -> None:
        """End supervisord and all that is under it, in order for so long; return when nothing of them is left."""
        keeper = self.keeper()
        if keeper is not None:
            self._end(self._end_keeper(keeper, seconds))
        self._end(self._strays())

    def _launch(self) -> None:
        self._layout.log.parent.mkdir(parents=True, exist_ok=True)
        self._make_socket_folder()
        self._layout.state(MANAGER).unlink(missing_ok=True)
        self._layout.keeper_spec.write_text(keeper_spec(self._layout).as_json(), "utf-8")
        command = [sys.executable, "-m", TETHER, str(self._layout.keeper_spec)]
        with self._layout.log.open("ab") as log:
            subprocess.run(
                command,
                cwd=self._layout.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
            )

    def _make_socket_folder(self) -> None:
        folder = self._layout.socket.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise ManagerError(
                f"{folder}, where the process manager would answer, belongs to another user. "
                "Remove it, or put the checkout into a folder with a shorter name."
            )

    def _answers_in_time(self, seconds: float) -> bool:
        def answers_or_fails() -> bool:
            told = TetherState.read(self._layout.state(MANAGER))
            return self._supervisor.answers() or (told is not None and told.failures > 1)

        try:
            wait_until(answers_or_fails, seconds, "the process manager to answer")
        except NotInTimeError:
            return False
        return self._supervisor.answers()

    def _end_keeper(self, keeper: int, patience: float) -> list[psutil.Process]:
        """End the keeper, and return all that was under it.

        It is given time, for it alone finds what descends from processes that end meanwhile; by force
        it is ended only when it hangs.
        """
        under: list[psutil.Process] = []
        for by, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, GONE_SECONDS)):
            try:
                under += psutil.Process(keeper).children(recursive=True)
                os.kill(keeper, by)
                os.kill(keeper, signal.SIGCONT)  # a paused one could not hear it
                wait_until(lambda: self.keeper() != keeper, seconds, "the process manager to end")
            except (ProcessLookupError, psutil.NoSuchProcess):
                return under
            except NotInTimeError:
                continue
            return under
        raise ManagerError(f"The process manager, process {keeper}, does not end, not even by SIGKILL.")

    def _strays(self) -> list[psutil.Process]:
        """Find what a manager left behind that was killed while parts of it were paused."""
        found = []
        for process in psutil.process_iter(["cmdline", "cwd"]):
            words = process.info["cmdline"] or []
            if process.info["cwd"] == str(self._layout.directory) and (
                TETHER in words or SUPERVISORD in words
            ):
                found += [process, *_children(process)]
        return found

    def _end(self, processes: Sequence[psutil.Process]) -> None:
        _, left = psutil.wait_procs(processes, timeout=1.0)
        for process in left:
            _kill(process)
        _, left = psutil.wait_procs(left, timeout=GONE_SECONDS)
        if left:
            raise ManagerError(f"These processes do not end, not even by SIGKILL: {left}.")


def _children(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return


def _tail(path: Path, lines: int = 15) -> str:
    return "\n".join(path.read_text("utf-8", "replace").splitlines()[-lines:]) if path.exists() else ""
