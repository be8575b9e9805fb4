"""Keeps one program running and leaves no process of it behind: `python -m penstock.infra.tether FILE`.

Guarantees:
- when the program exits, it is restarted after a delay (see backoff), until the tether is stopped;
- SIGTERM to the tether stops the program by its stop signal, and by SIGKILL after its stop time;
- when the program exits, for whatever reason, all its descendants are killed;
- a process whose parent exits while the program runs is killed: no process waits for it any more;
- when the tether's parent exits, the tether, the program and all their descendants are killed immediately;
- when the tether is killed, so is the program; the remaining descendants are adopted and killed by the next tether
  above, the one of the process manager.

It uses the standard library only, has one thread, and receives every signal synchronously, so that it misses none.
"""

import contextlib
import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from penstock.core.backoff import RestartBackoff
from penstock.infra.linux_processes import adopt_orphans, die_with_parent, list_children
from penstock.infra.readiness import READY_FILE_VARIABLE
from penstock.infra.tether_spec import SocketAddress, TetherSpec, TetherState

ORPHAN_SWEEP_INTERVAL_S = 1.0
"""How often orphans are searched for; the kernel does not report them."""

MIN_RUNNING_S = 1.0
"""A program that has run this long counts as running; one that cannot start usually exits earlier."""

LOCK_TAKEN_EXIT_CODE = 3
"""Exit code: another tether holds the lock."""

_HANDLED_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
_STOP_SIGNALS = {signal.SIGTERM, signal.SIGINT}


class Tether:
    """One program and the processes that descend from it."""

    def __init__(
        self,
        spec: TetherSpec,
        monotonic: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self._spec = spec
        self._monotonic = monotonic
        self._wall_clock = wall_clock
        self._parent_pid = os.getppid()
        self._program: subprocess.Popen[bytes] | None = None
        self._exit_code: int | None = None
        self._stopping = False
        self._restarts = 0
        self._backoff = RestartBackoff()

    def run(self) -> int:
        """Run the program until the tether is stopped or the program is done; return the tether's exit code."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED_SIGNALS)
        adopt_orphans()
        if not self._is_detached and not die_with_parent(self._parent_pid, signal.SIGTERM):
            return 1
        while self._wait_for_dependencies():
            self._run_once()
            if self._stopping:
                break
            if self._exit_code == 0 and self._spec.until_done:
                self._report_state("done", "ended with 0")
                return 0
            self._wait_before_restart()
        self._report_state("stopped", "")
        return 0

    @property
    def _is_detached(self) -> bool:
        return self._spec.lock_file is not None

    @property
    def _is_orphaned(self) -> bool:
        return not self._is_detached and os.getppid() != self._parent_pid

    def _wait_for_dependencies(self) -> bool:
        for address in self._spec.waits_for:
            if not self._stopping and not _accepts_connections(address):
                self._report_state("waiting", f"for {address[0]}:{address[1]} to answer")
            while not self._stopping and not _accepts_connections(address):
                self._wait_for_signal(0.2)
        return not self._stopping

    def _run_once(self) -> None:
        started_s = self._monotonic()
        self._spawn()
        is_running = False
        while self._exit_code is None and not self._stopping:
            self._wait_for_signal(ORPHAN_SWEEP_INTERVAL_S)
            self._kill_orphans()
            if not is_running and self._exit_code is None and self._monotonic() - started_s >= MIN_RUNNING_S:
                is_running = True
                self._report_state("running", "")
        if self._exit_code is None:
            self._stop_program()
        self._kill_descendants()
        self._backoff = self._backoff.after_run(self._monotonic() - started_s)

    def _spawn(self) -> None:
        self._exit_code, self._program = None, None
        ready_file = self._spec.ready_file
        if ready_file is not None:
            Path(ready_file).unlink(missing_ok=True)
        tether_pid = os.getpid()

        def set_up_child() -> None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _HANDLED_SIGNALS)
            if not die_with_parent(tether_pid):
                os._exit(1)

        try:
            self._program = subprocess.Popen(
                self._spec.command,
                cwd=self._spec.directory,
                env={
                    **os.environ,
                    **self._spec.environment,
                    **({READY_FILE_VARIABLE: ready_file} if ready_file else {}),
                },
                stdin=subprocess.DEVNULL,
                preexec_fn=set_up_child,  # noqa: PLW1509  safe: a tether is one thread
            )
            self._report_state("starting", "")
        except OSError as error:
            self._exit_code = 127
            self._log_line(f"cannot be started: {error.strerror}: {error.filename or self._spec.command[0]}")

    def _wait_for_signal(self, timeout_s: float) -> None:
        """Wait for a signal, or so long, and do what it asks."""
        signal_info = signal.sigtimedwait(_HANDLED_SIGNALS, max(timeout_s, 0))
        self._reap_children()
        if self._is_orphaned or (signal_info is not None and signal_info.si_signo in _STOP_SIGNALS):
            self._stopping = True

    def _reap_children(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self._program is not None and pid == self._program.pid:
                self._exit_code = self._program.returncode = os.waitstatus_to_exitcode(status)

    def _kill_orphans(self) -> None:
        for pid in list_children():
            if self._program is not None and pid != self._program.pid:
                self._log_line(f"process {pid} lost its parent and was ended")
                _send_signal(pid, signal.SIGKILL)

    def _stop_program(self) -> None:
        assert self._program is not None, "only a program that runs is stopped"
        if self._is_orphaned:
            return
        self._report_state("stopping", "")
        _send_signal(self._program.pid, self._spec.stop_signal)
        _send_signal(self._program.pid, signal.SIGCONT)  # one that is paused could not hear it
        deadline = self._monotonic() + self._spec.stop_seconds
        while self._exit_code is None and self._monotonic() < deadline and not self._is_orphaned:
            self._wait_for_signal(min(ORPHAN_SWEEP_INTERVAL_S, deadline - self._monotonic()))
        if self._exit_code is None:
            self._log_line(f"did not stop within {self._spec.stop_seconds:g} s and was ended by force")

    def _kill_descendants(self) -> None:
        """End every descendant: those of a process that was ended become children of this one."""
        while pids := list_children():
            for pid in pids:
                _send_signal(pid, signal.SIGKILL)
            self._wait_for_signal(0.05)

    def _wait_before_restart(self) -> None:
        delay_s = self._backoff.delay_s
        exit_reason = _describe_exit(self._exit_code)
        self._log_line(f"{exit_reason}; it is started again in {delay_s:g} s")
        self._report_state("retrying", exit_reason)
        self._restarts += 1
        deadline = self._monotonic() + delay_s
        while not self._stopping and self._monotonic() < deadline:
            self._wait_for_signal(deadline - self._monotonic())

    def _report_state(self, state: str, detail: str) -> None:
        pid = self._program.pid if self._program is not None and self._exit_code is None else None
        report = TetherState(state, pid, self._wall_clock(), self._restarts, self._backoff.failures, detail)
        try:
            report.write(Path(self._spec.state_file))
        except OSError as error:
            self._log_line(
                f"its state {state!r} cannot be written to {self._spec.state_file}: {error.strerror}"
            )

    def _log_line(self, message: str) -> None:
        with contextlib.suppress(OSError):  # the log's reader is gone: so will this tether be
            os.write(2, f"[tether] {self._spec.name}: {message}\n".encode())


def _accepts_connections(address: SocketAddress) -> bool:
    try:
        socket.create_connection(address, timeout=0.5).close()
        return True
    except OSError:
        return False


def _send_signal(pid: int, signal_number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal_number)


def _describe_exit(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return f"ended by {signal.Signals(-exit_code).name}"
    return f"ended with {exit_code}"


def _detach() -> None:
    """Continue as a detached process in a new session."""
    if os.fork():
        os._exit(0)
    os.setsid()


def _try_lock(lock_file: str) -> bool:
    """Lock the file for as long as this process lives; the kernel tells others who holds it."""
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def main(spec_file: str) -> int:
    """Keep the program that the file describes."""
    spec = TetherSpec.read(Path(spec_file))
    if spec.lock_file is not None:
        _detach()
        if not _try_lock(spec.lock_file):
            return LOCK_TAKEN_EXIT_CODE
    return Tether(spec).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
