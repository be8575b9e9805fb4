"""The process manager: start, query and stop programs.

supervisord keeps the tethers, and a tether keeps supervisord; so a supervisord that is killed comes back by
itself with all its programs, and one whose own tether is killed ends with everything under it.
"""

import json
import math
import time
import xmlrpc.client
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import groupby
from pathlib import Path

from penstock.core.errors import WaitTimeoutError
from penstock.core.files import file_lock, read_tail, write_atomically
from penstock.core.waiting import wait_until
from penstock.infra.errors import ProcessManagerError, ProgramsNotReadyError
from penstock.infra.processes.manager_layout import ManagerLayout
from penstock.infra.processes.program import Program
from penstock.infra.processes.program_status import ProgramStatus, derive_program_status
from penstock.infra.processes.supervisord_client import SupervisordClient
from penstock.infra.processes.supervisord_config import (
    MANAGER_NAME,
    STOP_MARGIN_S,
    render_supervisord_config,
    spec_fingerprint,
)
from penstock.infra.processes.supervisord_daemon import SupervisordDaemon
from penstock.infra.tether_spec import TetherSpec

READY_TIMEOUT_S = 180.0
OPERATION_LOCK_TIMEOUT_S = 60.0
MAX_STOP_S = 30.0
LOG_LINES_IN_ERRORS = 12
SHUTDOWN_TIMEOUT_S = 17.0
"""`make down` must finish within 20 s; the rest is for finding processes that a manager left."""

_NOT_RUNNING_FAULT = 70
_ALREADY_STARTED_FAULT = 60
_ENDED_STATES = ("STOPPED", "EXITED", "FATAL")


class ProcessManager:
    """The process manager of one runtime folder. Any number of instances may control the same one.

    `directory` is the manager's own folder; `log_directory` receives a log for each program.
    """

    def __init__(self, directory: Path, log_directory: Path) -> None:
        self._layout = ManagerLayout(directory.absolute(), log_directory.absolute())
        self._client = SupervisordClient(self._layout.socket_path)
        self._daemon = SupervisordDaemon(self._layout, self._client)

    def start(
        self,
        programs: Sequence[Program],
        timeout_s: float = READY_TIMEOUT_S,
        on_ready: Callable[[ProgramStatus], None] = lambda _: None,
        await_names: Collection[str] | None = None,
    ) -> None:
        """Run exactly these programs, and return when each is ready or done.

        Unchanged programs keep running, changed ones restart, others stop, and those that wait for their next
        try start immediately. `on_ready` receives each program once, when it is ready. With `await_names`, only
        these programs are awaited. Raises ProgramsNotReadyError after the timeout, or when a program keeps
        failing; nothing is stopped then.
        """
        with self._lock_operation():
            self._write_configuration(programs)
            self._daemon.start()
            self._apply_configuration()
            self._delete_old_specs()
        names = {program.name for program in programs}
        self._wait_until_ready(
            names if await_names is None else names & set(await_names), timeout_s, on_ready
        )

    def stop(self, timeout_s: float = SHUTDOWN_TIMEOUT_S) -> None:
        """Stop every program in order, then the manager; return when nothing of them is left.

        Takes as long as the slowest of each order, at most its `stop_seconds` and a little. What has not stopped
        within three quarters of the time there is, because it or the manager hangs, is ended with the manager,
        and by force. Nothing to stop is no error.
        """
        with self._lock_operation():
            deadline = time.monotonic() + timeout_s
            try:
                if self._client.is_running():
                    self._stop_in_order(deadline - timeout_s / 4)
            finally:
                self._daemon.stop(max(timeout_s / 6, deadline - time.monotonic()))

    def is_running(self) -> bool:
        """Return whether a manager is alive, even if it does not answer."""
        return self._daemon.find_keeper_pid() is not None

    def list_statuses(self) -> list[ProgramStatus]:
        """Return the status of each program, in start order; empty when no manager runs.

        Raises ProcessManagerError when one runs and does not answer.
        """
        if not self.is_running():
            return []
        infos = {info["name"]: info for info in self._client.call("getAllProcessInfo")}
        return [
            derive_program_status(infos[spec.name], spec, self._layout)
            for spec in self._read_specs()
            if spec.name in infos
        ]

    def list_pids(self) -> dict[str, int]:
        """Return the process id of each running program, and of supervisord as `manager`."""
        if not self.is_running():
            return {}
        programs = {status.name: status.pid for status in self.list_statuses() if status.pid}
        return {**programs, MANAGER_NAME: int(self._client.call("getPID"))}

    def start_program(self, name: str) -> None:
        """Start a stopped program; a running one is not touched."""
        self._call_for_program("startProcess", name, ignored_fault=_ALREADY_STARTED_FAULT)

    def stop_program(self, name: str) -> None:
        """Stop a program; it stays stopped until it or the manager is started."""
        self._stop_specs([spec for spec in self._read_specs() if spec.name == name])

    def log_file(self, name: str) -> Path:
        """Return the log file of a program; `manager` is the manager's own."""
        return self._layout.program_log_file(name)

    def read_log_tail(self, name: str, lines: int = 40) -> str:
        """Return the end of a program's log; empty if there is none."""
        return read_tail(self.log_file(name), lines)

    @contextmanager
    def _lock_operation(self) -> Iterator[None]:
        """Serialize starts and stops."""
        try:
            self._layout.directory.mkdir(parents=True, exist_ok=True)
            with ExitStack() as exit_stack:
                self._acquire_operation_lock(exit_stack)
                yield
        except OSError as error:
            raise ProcessManagerError(
                f"The process manager cannot use {error.filename or self._layout.directory}: {error.strerror}. "
                "Make it writable, with some space free, and try again."
            ) from error

    def _acquire_operation_lock(self, exit_stack: ExitStack) -> None:
        try:
            exit_stack.enter_context(file_lock(self._layout.operation_lock_file, OPERATION_LOCK_TIMEOUT_S))
        except WaitTimeoutError as error:
            raise ProcessManagerError(
                "Another `make up` or `make down` is still running; try again later."
            ) from error

    def _write_configuration(self, programs: Sequence[Program]) -> None:
        self._layout.spec_directory.mkdir(mode=0o700, exist_ok=True)  # environments may hold secrets
        self._layout.state_directory.mkdir(exist_ok=True)
        self._layout.log_directory.mkdir(parents=True, exist_ok=True)
        ordered_programs = sorted(programs, key=lambda program: program.start_order)
        index = [[program.start_order, str(self._write_spec(program))] for program in ordered_programs]
        write_atomically(self._layout.config_file, render_supervisord_config(ordered_programs, self._layout))
        write_atomically(self._layout.index_file, json.dumps(index))

    def _write_spec(self, program: Program) -> Path:
        spec = program.to_tether_spec(self._layout.state_file(program.name))
        path = self._layout.spec_file(program.name, spec_fingerprint(spec))
        write_atomically(path, spec.as_json())
        return path

    def _apply_configuration(self) -> None:
        """Apply the written configuration to a manager that may already run."""
        statuses = self.list_statuses()
        [[added, changed, removed]] = self._call("reloadConfig")
        self._stop_names([*changed, *removed], STOP_MARGIN_S + MAX_STOP_S)
        for name in (*changed, *removed):
            self._call("removeProcessGroup", name)
        for name in (*added, *changed):
            self._call("addProcessGroup", name)
        unchanged = [status for status in statuses if status.name not in (*changed, *removed)]
        self._stop_names([status.name for status in unchanged if status.state == "retrying"], STOP_MARGIN_S)
        for status in unchanged:
            if status.state in ("stopped", "retrying"):
                self.start_program(status.name)

    def _delete_old_specs(self) -> None:
        current_paths = {path for _, path in self._read_index()}
        for path in self._layout.spec_directory.iterdir():
            if str(path) not in current_paths:
                path.unlink()

    def _wait_until_ready(
        self, names: Collection[str], timeout_s: float, on_ready: Callable[[ProgramStatus], None]
    ) -> None:
        reported: set[str] = set()

        def all_ready() -> bool:
            statuses = [status for status in self.list_statuses() if status.name in names]
            for status in statuses:
                if status.ready and status.name not in reported:
                    reported.add(status.name)
                    on_ready(status)
                if status.is_failing and status.name not in reported:
                    raise ProgramsNotReadyError(self._describe_not_ready([status]))
            return all(status.ready for status in statuses)

        try:
            wait_until(all_ready, timeout_s, "the programs to become ready")
        except WaitTimeoutError as error:
            not_ready = [
                status for status in self.list_statuses() if status.name in names and not status.ready
            ]
            raise ProgramsNotReadyError(self._describe_not_ready(not_ready)) from error

    def _describe_not_ready(self, not_ready: Iterable[ProgramStatus]) -> str:
        return "\n".join(
            f"{status.name} is not ready ({status.state}{': ' if status.detail else ''}{status.detail}). "
            f"The end of {status.log}:\n{self.read_log_tail(status.name, LOG_LINES_IN_ERRORS)}"
            for status in not_ready
        )

    def _stop_in_order(self, deadline: float) -> None:
        # A program that does not stop, because it or the manager hangs, is killed with the manager.
        with suppress(ProcessManagerError):
            for tier in self._tiers_to_stop():
                self._stop_specs(tier, deadline - time.monotonic())

    def _tiers_to_stop(self) -> list[list[TetherSpec]]:
        index = sorted(self._read_index(), reverse=True)
        tiers = groupby(index, key=lambda entry: entry[0])
        return [[TetherSpec.read(Path(path)) for _, path in tier] for _, tier in tiers]

    def _stop_specs(self, specs: Sequence[TetherSpec], max_wait_s: float = math.inf) -> None:
        longest_stop_s = max((spec.stop_seconds for spec in specs), default=0) + STOP_MARGIN_S + 1
        self._stop_names([spec.name for spec in specs], min(longest_stop_s, max_wait_s))

    def _stop_names(self, names: Sequence[str], timeout_s: float) -> None:
        for name in names:
            self._call_for_program("stopProcess", name, ignored_fault=_NOT_RUNNING_FAULT)

        def are_all_stopped() -> bool:
            return all(
                self._client.call("getProcessInfo", name)["statename"] in _ENDED_STATES for name in names
            )

        try:
            wait_until(are_all_stopped, timeout_s, f"{', '.join(names)} to stop")
        except WaitTimeoutError as error:
            raise ProcessManagerError(
                f"{', '.join(names)} did not stop within {timeout_s:g} s. `make down` ends all programs, by force "
                "where that is needed; `make up` begins again."
            ) from error

    def _call_for_program(self, method: str, name: str, ignored_fault: int) -> None:
        try:
            self._client.call(method, name, False)  # supervisord does not wait for it
        except xmlrpc.client.Fault as fault:
            if fault.faultCode != ignored_fault:
                raise ProcessManagerError(f"{method} of {name} was refused: {fault.faultString}.") from fault

    def _call(self, method: str, *arguments: str) -> list[list[list[str]]]:
        try:
            answer: list[list[list[str]]] = self._client.call(method, *arguments)
        except xmlrpc.client.Fault as fault:
            raise ProcessManagerError(
                f"{method} {' '.join(arguments)} was refused: {fault.faultString}."
            ) from fault
        return answer

    def _read_index(self) -> list[tuple[int, str]]:
        return [(order, path) for order, path in json.loads(self._layout.index_file.read_text("utf-8"))]

    def _read_specs(self) -> list[TetherSpec]:
        return [TetherSpec.read(Path(path)) for _, path in self._read_index()]
