"""The process manager: told what is to run, asked how it fares, stopped.

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

from penstock.infra.errors import ManagerError, NotInTimeError, ProgramsNotReadyError
from penstock.infra.files import held, write_whole
from penstock.infra.processes.client import Supervisor
from penstock.infra.processes.daemon import Daemon
from penstock.infra.processes.layout import Layout
from penstock.infra.processes.program import Program
from penstock.infra.processes.rendering import MANAGER, STOP_MARGIN_SECONDS, fingerprint, render
from penstock.infra.processes.status import ProgramStatus, judge
from penstock.infra.tether_spec import TetherSpec
from penstock.infra.waiting import wait_until

READY_SECONDS = 180.0
TURN_SECONDS = 60.0
LONGEST_STOP_SECONDS = 30.0
LOG_LINES_IN_ERRORS = 12
DOWN_SECONDS = 17.0
"""`make down` is promised within 20 s; the rest is for finding what a manager left behind."""

_NOT_RUNNING = 70
_ALREADY_STARTED = 60
_ENDED = ("STOPPED", "EXITED", "FATAL")


class Manager:
    """The process manager of one runtime folder. Any number of these may speak to the same one.

    `directory` is the manager's own folder; `logs` receives a log per program.
    """

    def __init__(self, directory: Path, logs: Path) -> None:
        self._layout = Layout(directory.absolute(), logs.absolute())
        self._supervisor = Supervisor(self._layout.socket)
        self._daemon = Daemon(self._layout, self._supervisor)

    def start(
        self,
        programs: Sequence[Program],
        seconds: float = READY_SECONDS,
        ready: Callable[[ProgramStatus], None] = lambda _: None,
        awaited: Collection[str] | None = None,
    ) -> None:
        """Have exactly these programs running, and return once each is ready or done.

        What already runs as asked is left alone; what changed is restarted; what is not among them is
        stopped; what waits for its next try is tried at once. `ready` is told each program once, when it
        is. With `awaited`, only the programs of these names are waited for. Raises ProgramsNotReadyError
        when the time is over, or as soon as one keeps failing; all stays as it is then, for the caller to
        judge.
        """
        with self._turn():
            self._write(programs)
            self._daemon.start()
            self._apply()
            self._forget_old_specs()
        names = {program.name for program in programs}
        self._wait_until_ready(names if awaited is None else names & set(awaited), seconds, ready)

    def stop(self, seconds: float = DOWN_SECONDS) -> None:
        """Stop every program in order, then the manager; return when nothing of them is left.

        Takes as long as the slowest of each order, at most its `stop_seconds` and a little. What has not stopped
        within three quarters of the time there is, because it or the manager hangs, is ended with the manager,
        and by force. Nothing to stop is no error.
        """
        with self._turn():
            deadline = time.monotonic() + seconds
            try:
                if self._supervisor.answers():
                    self._stop_in_order(deadline - seconds / 4)
            finally:
                self._daemon.end(max(seconds / 6, deadline - time.monotonic()))

    def running(self) -> bool:
        """Say whether a manager lives, answering or not."""
        return self._daemon.keeper() is not None

    def status(self) -> list[ProgramStatus]:
        """Return how each program fares, in start order; empty when no manager lives.

        Raises ManagerError when one lives and does not answer.
        """
        if not self.running():
            return []
        infos = {info["name"]: info for info in self._supervisor.call("getAllProcessInfo")}
        return [judge(infos[spec.name], spec, self._layout) for spec in self._specs() if spec.name in infos]

    def pids(self) -> dict[str, int]:
        """Return the process id of each program that runs, and of the `manager` itself (supervisord)."""
        if not self.running():
            return {}
        programs = {status.name: status.pid for status in self.status() if status.pid}
        return {**programs, MANAGER: int(self._supervisor.call("getPID"))}

    def start_program(self, name: str) -> None:
        """Start one program that was stopped; one that runs is left alone."""
        self._order("startProcess", name, unless=_ALREADY_STARTED)

    def stop_program(self, name: str) -> None:
        """Stop one program; it stays stopped until it is started again, or the manager is."""
        self._stop_all([spec for spec in self._specs() if spec.name == name])

    def log(self, name: str) -> Path:
        """Return where a program's log is; `manager` is the manager's own."""
        return self._layout.program_log(name)

    def tail(self, name: str, lines: int = 40) -> str:
        """Return the end of a program's log; empty when there is none."""
        path = self.log(name)
        text = path.read_text("utf-8", "replace") if path.exists() else ""
        return "\n".join(text.splitlines()[-lines:])

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Let one start or stop happen at a time."""
        try:
            self._layout.directory.mkdir(parents=True, exist_ok=True)
            with ExitStack() as turn:
                self._wait_for_turn(turn)
                yield
        except OSError as error:
            raise ManagerError(
                f"The process manager cannot use {error.filename or self._layout.directory}: {error.strerror}. "
                "Make it writable, with some space free, and try again."
            ) from error

    def _wait_for_turn(self, turn: ExitStack) -> None:
        try:
            turn.enter_context(held(self._layout.turn, TURN_SECONDS))
        except NotInTimeError as error:
            raise ManagerError(
                "Another `make up` or `make down` has not come to its end; try again."
            ) from error

    def _write(self, programs: Sequence[Program]) -> None:
        self._layout.programs.mkdir(mode=0o700, exist_ok=True)  # environments may hold secrets
        self._layout.states.mkdir(exist_ok=True)
        self._layout.logs.mkdir(parents=True, exist_ok=True)
        ordered = sorted(programs, key=lambda program: program.start_order)
        index = [[program.start_order, str(self._write_spec(program))] for program in ordered]
        write_whole(self._layout.configuration, render(ordered, self._layout))
        write_whole(self._layout.index, json.dumps(index))

    def _write_spec(self, program: Program) -> Path:
        spec = program.spec(self._layout.state(program.name))
        path = self._layout.spec(program.name, fingerprint(spec))
        write_whole(path, spec.as_json())
        return path

    def _apply(self) -> None:
        """Bring a manager that may be running already to what is written."""
        statuses = self.status()
        [[added, changed, removed]] = self._call("reloadConfig")
        self._stop_names([*changed, *removed], STOP_MARGIN_SECONDS + LONGEST_STOP_SECONDS)
        for name in (*changed, *removed):
            self._call("removeProcessGroup", name)
        for name in (*added, *changed):
            self._call("addProcessGroup", name)
        kept = [status for status in statuses if status.name not in (*changed, *removed)]
        self._stop_names([status.name for status in kept if status.state == "retrying"], STOP_MARGIN_SECONDS)
        for status in kept:
            if status.state in ("stopped", "retrying"):
                self.start_program(status.name)

    def _forget_old_specs(self) -> None:
        kept = {path for _, path in self._index()}
        for path in self._layout.programs.iterdir():
            if str(path) not in kept:
                path.unlink()

    def _wait_until_ready(
        self, names: Collection[str], seconds: float, ready: Callable[[ProgramStatus], None]
    ) -> None:
        told: set[str] = set()

        def all_ready() -> bool:
            statuses = [status for status in self.status() if status.name in names]
            for status in statuses:
                if status.ready and status.name not in told:
                    told.add(status.name)
                    ready(status)
                if status.failing and status.name not in told:
                    raise ProgramsNotReadyError(self._explain([status]))
            return all(status.ready for status in statuses)

        try:
            wait_until(all_ready, seconds, "the programs to become ready")
        except NotInTimeError as error:
            late = [status for status in self.status() if status.name in names and not status.ready]
            raise ProgramsNotReadyError(self._explain(late)) from error

    def _explain(self, late: Iterable[ProgramStatus]) -> str:
        return "\n".join(
            f"{status.name} is not ready ({status.state}{': ' if status.detail else ''}{status.detail}). "
            f"The end of {status.log}:\n{self.tail(status.name, LOG_LINES_IN_ERRORS)}"
            for status in late
        )

    def _stop_in_order(self, deadline: float) -> None:
        # What does not stop so, because it or the manager hangs, is ended with the manager.
        with suppress(ManagerError):
            for tier in self._tiers_to_stop():
                self._stop_all(tier, deadline - time.monotonic())

    def _tiers_to_stop(self) -> list[list[TetherSpec]]:
        index = sorted(self._index(), reverse=True)
        tiers = groupby(index, key=lambda entry: entry[0])
        return [[TetherSpec.read(Path(path)) for _, path in tier] for _, tier in tiers]

    def _stop_all(self, specs: Sequence[TetherSpec], at_most: float = math.inf) -> None:
        longest = max((spec.stop_seconds for spec in specs), default=0) + STOP_MARGIN_SECONDS + 1
        self._stop_names([spec.name for spec in specs], min(longest, at_most))

    def _stop_names(self, names: Sequence[str], seconds: float) -> None:
        for name in names:
            self._order("stopProcess", name, unless=_NOT_RUNNING)

        def stopped() -> bool:
            return all(self._supervisor.call("getProcessInfo", name)["statename"] in _ENDED for name in names)

        try:
            wait_until(stopped, seconds, f"{', '.join(names)} to stop")
        except NotInTimeError as error:
            raise ManagerError(
                f"{', '.join(names)} did not stop within {seconds:g} s. `make down` ends all programs, by force "
                "where that is needed; `make up` begins again."
            ) from error

    def _order(self, method: str, name: str, unless: int) -> None:
        try:
            self._supervisor.call(method, name, False)  # not waited for by supervisord
        except xmlrpc.client.Fault as fault:
            if fault.faultCode != unless:
                raise ManagerError(f"{method} of {name} was refused: {fault.faultString}.") from fault

    def _call(self, method: str, *arguments: str) -> list[list[list[str]]]:
        try:
            answer: list[list[list[str]]] = self._supervisor.call(method, *arguments)
        except xmlrpc.client.Fault as fault:
            raise ManagerError(f"{method} {' '.join(arguments)} was refused: {fault.faultString}.") from fault
        return answer

    def _index(self) -> list[tuple[int, str]]:
        return [(order, path) for order, path in json.loads(self._layout.index.read_text("utf-8"))]

    def _specs(self) -> list[TetherSpec]:
        return [TetherSpec.read(Path(path)) for _, path in self._index()]
