"""A program that the process manager is to keep: plain data."""

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from penstock.infra.errors import ProcessManagerError
from penstock.infra.tether_spec import SocketAddress, TetherSpec

_NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9_-]*")


@dataclass(frozen=True)
class Program:
    """One program, and how it is kept. Two that are equal need no restart.

    Programs of a lower `start_order` stop after those of a higher one; those of one order stop together.
    Starting is not held up by the order: a program that needs another says so by `waits_for`, which
    holds after a restart as well.
    """

    name: str
    command: tuple[str, ...]
    directory: Path | None = None
    """Where it runs; without it, in the manager's own folder."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment in which the manager was started."""
    start_order: int = 50
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 5.0
    """How long it may take to stop before it is ended by force."""
    until_done: bool = False
    """Run until it has once ended with 0 (a preparation), rather than for ever."""
    waits_for: tuple[SocketAddress, ...] = ()
    """Not started before something answers at each of these (host, port)."""
    answers_at: SocketAddress | None = None
    """Where it answers when it is ready."""
    reports_ready: bool = False
    """It calls readiness.tell_ready(). With neither, a program is ready when it has run for a second."""

    def __post_init__(self) -> None:
        if not _NAME_PATTERN.fullmatch(self.name):
            raise ProcessManagerError(
                f"A program is called {self.name!r}; its name names its log and may hold only "
                "lower-case letters, digits, - and _."
            )
        if not self.command:
            raise ProcessManagerError(f"Program {self.name} has no command.")

    def to_tether_spec(self, state_file: Path) -> TetherSpec:
        """Return what the program's tether is told."""
        return TetherSpec(
            name=self.name,
            command=tuple(str(argument) for argument in self.command),
            state_file=str(state_file),
            directory=str(self.directory) if self.directory else None,
            environment=dict(self.environment),
            stop_signal=int(self.stop_signal),
            stop_seconds=self.stop_seconds,
            until_done=self.until_done,
            waits_for=self.waits_for,
            answers_at=self.answers_at,
            ready_file=str(state_file.with_suffix(".ready")) if self.reports_ready else None,
        )
