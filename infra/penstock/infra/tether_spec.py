"""The spec file of a tether: one program, and how it is run.

Standard library only: each tether is a process, and this is most of what it loads.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from penstock.core.files import write_atomically

SocketAddress = tuple[str, int]
"""A host and a port."""


@dataclass(frozen=True)
class TetherSpec:
    """One program under a tether."""

    name: str
    command: tuple[str, ...]
    state_file: str
    directory: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to what the tether itself was given."""
    stop_signal: int = 15
    stop_seconds: float = 5.0
    until_done: bool = False
    """Run until it has once ended with 0, rather than for ever."""
    waits_for: tuple[SocketAddress, ...] = ()
    """Not started before something answers at each of these."""
    answers_at: SocketAddress | None = None
    ready_file: str | None = None
    """Where the program tells that it is ready (see readiness); removed before each start."""
    lock_file: str | None = None
    """Held locked while the tether lives. Such a tether detaches itself, and outlives its parent."""

    def as_json(self) -> str:
        """Return the spec as the text of its file; the same spec gives the same text."""
        return json.dumps(asdict(self), sort_keys=True, indent=1)

    @classmethod
    def read(cls, path: Path) -> "TetherSpec":
        """Read a spec that as_json has written."""
        document = json.loads(path.read_text("utf-8"))
        document["command"] = tuple(document["command"])
        document["waits_for"] = tuple((host, port) for host, port in document["waits_for"])
        document["answers_at"] = tuple(document["answers_at"]) if document["answers_at"] else None
        return cls(**document)


@dataclass(frozen=True)
class TetherState:
    """What a tether last wrote of its program."""

    state: str
    """waiting, starting, running, retrying, stopping, stopped or done."""
    pid: int | None
    """The program's process id while it runs."""
    since: float
    """When that state began, seconds since the epoch."""
    restarts: int
    failures: int
    """How often it has ended in a row without having run for long."""
    detail: str

    @classmethod
    def read(cls, path: Path) -> "TetherState | None":
        """Read what was last written; None when nothing was."""
        try:
            return cls(**json.loads(path.read_text("utf-8")))
        except FileNotFoundError:
            return None

    def write(self, path: Path) -> None:
        """Write it whole or not at all."""
        write_atomically(path, json.dumps(asdict(self)))
