"""Keeping one program running, and leaving nothing of it behind: `python -m penstock.infra.tether FILE`.

What a tether promises:
- the program is started again whenever it ends, after a pause (see backoff), until the tether is stopped;
- SIGTERM to the tether stops the program by its own signal, and by force after its own time;
- when the program ends, for whatever reason, every process that descends from it is ended too;
- a process whose parent ended while the program runs is ended: nobody waits for it any more;
- when the tether's parent ends, so do the tether, the program, and all that descends from them, at once;
- when the tether itself is killed, so is the program; what the program leaves behind falls to the
  next tether above, the one that keeps the process manager.

It uses the standard library only, is one thread, and takes every signal synchronously, so that there is no
moment at which one is missed.
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

from penstock.infra.backoff import Backoff
from penstock.infra.kernel import adopt_orphans, children, die_with_parent
from penstock.infra.readiness import READY_FILE
from penstock.infra.tether_spec import Address, TetherSpec, TetherState

SWEEP_SECONDS = 1.0
"""How often orphans are looked for; nothing tells of their coming."""

SETTLED_SECONDS = 1.0
"""A program that has run for so long is told to run; many that cannot start end before."""

LOCK_TAKEN = 3
"""Exit code: another tether holds the lock."""

_TAKEN = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD}
_ENDING = {signal.SIGTERM, signal.SIGINT}


class Tether:
    """One program and the processes that descend from it."""

    def __init__(
        self,
        spec: TetherSpec,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._spec = spec
        self._monotonic = monotonic
        self._now = now
        self._parent = os.getppid()
        self._program: subprocess.Popen[bytes] | None = None
        self._ended: int | None = None
        self._stopping = False
        self._restarts = 0
        self._backoff = Backoff()

    def run(self) -> int:
        """Keep the program until told to stop, or until it is done; return the tether's exit code."""
        signal.pthread_sigmask(signal.SIG_BLOCK, _TAKEN)
        adopt_orphans()
        if not self._outlives_parent and not die_with_parent(self._parent, signal.SIGTERM):
            return 1
        while self._addresses_answer():
            self._run_once()
            if self._stopping:
                break
            if self._ended == 0 and self._spec.until_done:
                self._tell("done", "ended with 0")
                return 0
            self._pause_before_retry()
        self._tell("stopped", "")
        return 0

    @property
    def _outlives_parent(self) -> bool:
        return self._spec.lock_file is not None

    @property
    def _abandoned(self) -> bool:
        return not self._outlives_parent and os.getppid() != self._parent

    def _addresses_answer(self) -> bool:
        for address in self._spec.waits_for:
            if not self._stopping and not _answers(address):
                self._tell("waiting", f"for {address[0]}:{address[1]} to answer")
            while not self._stopping and not _answers(address):
                self._take_signal(0.2)
        return not self._stopping

    def _run_once(self) -> None:
        started = self._monotonic()
        self._spawn()
        settled = False
        while self._ended is None and not self._stopping:
            self._take_signal(SWEEP_SECONDS)
            self._end_orphans()
            if not settled and self._ended is None and self._monotonic() - started >= SETTLED_SECONDS:
                settled = True
                self._tell("running", "")
        if self._ended is None:
            self._stop_program()
        self._end_all()
        self._backoff = self._backoff.after(self._monotonic() - started)

    def _spawn(self) -> None:
        self._ended, self._program = None, None
        ready = self._spec.ready_file
        if ready is not None:
            Path(ready).unlink(missing_ok=True)
        tether = os.getpid()

        def in_child() -> None:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _TAKEN)
            if not die_with_parent(tether):
                os._exit(1)

        try:
            self._program = subprocess.Popen(
                self._spec.command,
                cwd=self._spec.directory,
                env={**os.environ, **self._spec.environment, **({READY_FILE: ready} if ready else {})},
                stdin=subprocess.DEVNULL,
                preexec_fn=in_child,  # noqa: PLW1509  safe: a tether is one thread
            )
            self._tell("starting", "")
        except OSError as error:
            self._ended = 127
            self._say(f"cannot be started: {error.strerror}: {error.filename or self._spec.command[0]}")

    def _take_signal(self, seconds: float) -> None:
        """Wait for a signal, or so long, and do what it asks."""
        taken = signal.sigtimedwait(_TAKEN, max(seconds, 0))
        self._reap()
        if self._abandoned or (taken is not None and taken.si_signo in _ENDING):
            self._stopping = True

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if self._program is not None and pid == self._program.pid:
                self._ended = self._program.returncode = os.waitstatus_to_exitcode(status)

    def _end_orphans(self) -> None:
        for pid in children():
            if self._program is not None and pid != self._program.pid:
                self._say(f"process {pid} lost its parent and was ended")
                _kill(pid, signal.SIGKILL)

    def _stop_program(self) -> None:
        assert self._program is not None, "only a program that runs is stopped"
        if self._abandoned:
            return
        self._tell("stopping", "")
        _kill(self._program.pid, self._spec.stop_signal)
        _kill(self._program.pid, signal.SIGCONT)  # one that is paused could not hear it
        deadline = self._monotonic() + self._spec.stop_seconds
        while self._ended is None and self._monotonic() < deadline and not self._abandoned:
            self._take_signal(min(SWEEP_SECONDS, deadline - self._monotonic()))
        if self._ended is None:
            self._say(f"did not stop within {self._spec.stop_seconds:g} s and was ended by force")

    def _end_all(self) -> None:
        """End every descendant: those of a process that was ended become children of this one."""
        while left := children():
            for pid in left:
                _kill(pid, signal.SIGKILL)
            self._take_signal(0.05)

    def _pause_before_retry(self) -> None:
        seconds = self._backoff.seconds
        ended = _how_it_ended(self._ended)
        self._say(f"{ended}; it is started again in {seconds:g} s")
        self._tell("retrying", ended)
        self._restarts += 1
        deadline = self._monotonic() + seconds
        while not self._stopping and self._monotonic() < deadline:
            self._take_signal(deadline - self._monotonic())

    def _tell(self, state: str, detail: str) -> None:
        pid = self._program.pid if self._program is not None and self._ended is None else None
        told = TetherState(state, pid, self._now(), self._restarts, self._backoff.failures, detail)
        try:
            told.write(Path(self._spec.state_file))
        except OSError as error:
            self._say(f"its state {state!r} cannot be written to {self._spec.state_file}: {error.strerror}")

    def _say(self, what: str) -> None:
        with contextlib.suppress(OSError):  # the log's reader is gone: so will this tether be
            os.write(2, f"[tether] {self._spec.name}: {what}\n".encode())


def _answers(address: Address) -> bool:
    try:
        socket.create_connection(address, timeout=0.5).close()
        return True
    except OSError:
        return False


def _kill(pid: int, by: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, by)


def _how_it_ended(status: int | None) -> str:
    if status is not None and status < 0:
        return f"ended by {signal.Signals(-status).name}"
    return f"ended with {status}"


def _detach() -> None:
    """Go on as a process that nobody waits for, in a session of its own."""
    if os.fork():
        os._exit(0)
    os.setsid()


def _hold(lock_file: str) -> bool:
    """Lock the file for as long as this process lives; the kernel tells others who holds it."""
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return False
    return True


def main(file: str) -> int:
    """Keep the program that the file describes."""
    spec = TetherSpec.read(Path(file))
    if spec.lock_file is not None:
        _detach()
        if not _hold(spec.lock_file):
            return LOCK_TAKEN
    return Tether(spec).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
