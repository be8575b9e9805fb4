"""A program of the process manager, as plain data."""

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
    """Working directory; default: the manager's folder."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that are added to the manager's environment."""
    start_order: int = 50
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 5.0
    """Time to stop before the program is killed."""
    until_done: bool = False
    """Run until the program exits once with 0, instead of forever."""
    waits_for: tuple[SocketAddress, ...] = ()
    """Addresses (host, port) that must accept connections before the program starts."""
    answers_at: SocketAddress | None = None
    """Address at which the program accepts connections when it is ready."""
    reports_ready: bool = False
    """The program calls readiness.report_ready(). Without both, it is ready after running for one second."""

    def __post_init__(self) -> None:
        if not _NAME_PATTERN.fullmatch(self.name):
            raise ProcessManagerError(
                f"A program is called {self.name!r}; its name names its log and may hold only "
                "lower-case letters, digits, - and _."
            )
        if not self.command:
            raise ProcessManagerError(f"Program {self.name} has no command.")

    def to_tether_spec(self, state_file: Path) -> TetherSpec:
        """Return the spec of the program's tether."""
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
