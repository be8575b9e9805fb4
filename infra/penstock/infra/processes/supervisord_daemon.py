"""supervisord and the tether that runs it: find, start and stop them.

Who lives is asked of the kernel (who holds the lock), so there is no pid file that could be stale.
"""

import fcntl
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Sequence

import psutil

from penstock.core.errors import WaitTimeoutError
from penstock.core.files import read_tail
from penstock.core.waiting import wait_until
from penstock.infra.errors import ProcessManagerError
from penstock.infra.process_trees import kill_process, list_descendants
from penstock.infra.processes.manager_layout import ManagerLayout
from penstock.infra.processes.supervisord_client import SupervisordClient
from penstock.infra.processes.supervisord_config import (
    MANAGER_NAME,
    MANAGER_STOP_TIMEOUT_S,
    SUPERVISORD_MODULE,
    TETHER_MODULE,
    build_keeper_spec,
)
from penstock.infra.tether_spec import TetherState

START_TIMEOUT_S = 20.0
HANG_TIMEOUT_S = 5.0
"""A manager that has not answered for this long is replaced."""

KEEPER_STOP_TIMEOUT_S = MANAGER_STOP_TIMEOUT_S + 15.0
"""A keeper stops supervisord within the first part, and has the rest to end what is left by force."""

KILL_TIMEOUT_S = 10.0
_FLOCK_STRUCT = "hhqqi"


class SupervisordDaemon:
    """The manager processes of one layout."""

    def __init__(self, layout: ManagerLayout, supervisor: SupervisordClient) -> None:
        self._layout = layout
        self._supervisor = supervisor

    def find_keeper_pid(self) -> int | None:
        """Return the pid of the tether that runs supervisord; None if there is none."""
        try:
            with self._layout.keeper_lock_file.open("rb+") as file:
                lock_query = struct.pack(_FLOCK_STRUCT, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind, _, _, _, pid = struct.unpack(
                    _FLOCK_STRUCT, fcntl.fcntl(file, fcntl.F_GETLK, lock_query)
                )
        except FileNotFoundError:
            return None
        return None if kind == fcntl.F_UNLCK else pid

    def start(self) -> None:
        """Start supervisord if needed and wait for its answer. One that hangs is killed first."""
        if self.find_keeper_pid() is not None and not self._wait_for_answer(HANG_TIMEOUT_S):
            self.stop()
        if self.find_keeper_pid() is None:
            self._kill_processes(self._find_strays())
            self._launch()
            if not self._wait_for_answer(START_TIMEOUT_S):
                log_tail = read_tail(self._layout.manager_log_file)
                self.stop()
                raise ProcessManagerError(
                    f"The process manager did not start within {START_TIMEOUT_S:g} s. "
                    f"The end of {self._layout.manager_log_file}:\n{log_tail}"
                )

    def stop(self, timeout_s: float = KEEPER_STOP_TIMEOUT_S) -> None:
        """End supervisord and all that is under it, in order for so long; return when nothing of them is left."""
        keeper_pid = self.find_keeper_pid()
        if keeper_pid is not None:
            self._kill_processes(self._stop_keeper(keeper_pid, timeout_s))
        self._kill_processes(self._find_strays())

    def _launch(self) -> None:
        self._layout.manager_log_file.parent.mkdir(parents=True, exist_ok=True)
        self._make_socket_folder()
        self._layout.state_file(MANAGER_NAME).unlink(missing_ok=True)
        self._layout.keeper_spec_file.write_text(build_keeper_spec(self._layout).as_json(), "utf-8")
        command = [sys.executable, "-m", TETHER_MODULE, str(self._layout.keeper_spec_file)]
        with self._layout.manager_log_file.open("ab") as log:
            subprocess.run(
                command,
                cwd=self._layout.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                check=True,
            )

    def _make_socket_folder(self) -> None:
        folder = self._layout.socket_path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_uid != os.getuid():
            raise ProcessManagerError(
                f"{folder}, where the process manager would answer, belongs to another user. "
                "Remove it, or put the checkout into a folder with a shorter name."
            )

    def _wait_for_answer(self, timeout_s: float) -> bool:
        def has_answered_or_failed() -> bool:
            state = TetherState.read(self._layout.state_file(MANAGER_NAME))
            return self._supervisor.is_running() or (state is not None and state.failures > 1)

        try:
            wait_until(has_answered_or_failed, timeout_s, "the process manager to answer")
        except WaitTimeoutError:
            return False
        return self._supervisor.is_running()

    def _stop_keeper(self, keeper_pid: int, grace_s: float) -> list[psutil.Process]:
        """End the keeper, and return all that was under it.

        It is given time, for it alone finds what descends from processes that end meanwhile; by force
        it is ended only when it hangs.
        """
        descendants: list[psutil.Process] = []
        for signal_number, timeout_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, KILL_TIMEOUT_S)):
            try:
                descendants += psutil.Process(keeper_pid).children(recursive=True)
                os.kill(keeper_pid, signal_number)
                os.kill(keeper_pid, signal.SIGCONT)  # a paused process does not handle SIGTERM
                wait_until(
                    lambda: self.find_keeper_pid() != keeper_pid, timeout_s, "the process manager to end"
                )
            except (ProcessLookupError, psutil.NoSuchProcess):
                return descendants
            except WaitTimeoutError:
                continue
            return descendants
        raise ProcessManagerError(
            f"The process manager, process {keeper_pid}, does not end, not even by SIGKILL."
        )

    def _find_strays(self) -> list[psutil.Process]:
        """Find processes of a manager that was killed while some of them were paused."""
        strays = []
        for process in psutil.process_iter(["cmdline", "cwd"]):
            arguments = process.info["cmdline"] or []
            if process.info["cwd"] == str(self._layout.directory) and (
                TETHER_MODULE in arguments or SUPERVISORD_MODULE in arguments
            ):
                strays += [process, *list_descendants(process)]
        return strays

    def _kill_processes(self, processes: Sequence[psutil.Process]) -> None:
        _, remaining = psutil.wait_procs(processes, timeout=1.0)
        for process in remaining:
            kill_process(process)
        _, remaining = psutil.wait_procs(remaining, timeout=KILL_TIMEOUT_S)
        if remaining:
            raise ProcessManagerError(f"These processes do not end, not even by SIGKILL: {remaining}.")
