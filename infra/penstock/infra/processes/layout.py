"""Where the process manager keeps what: every path is decided here."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

LONGEST_SOCKET_PATH = 90
"""A unix socket's path holds 107 bytes, and supervisord adds its pid to it while it starts."""


@dataclass(frozen=True)
class Layout:
    """The files of one manager: `directory` is its own, `logs` may be shared."""

    directory: Path
    logs: Path

    @property
    def configuration(self) -> Path:
        """What supervisord reads."""
        return self.directory / "supervisord.conf"

    @property
    def index(self) -> Path:
        """Which programs there are, in start order."""
        return self.directory / "programs.json"

    @property
    def programs(self) -> Path:
        """Holds what each program's tether is told."""
        return self.directory / "programs"

    @property
    def states(self) -> Path:
        """Holds what each tether last told."""
        return self.directory / "state"

    @property
    def keeper_spec(self) -> Path:
        """What the tether around supervisord reads."""
        return self.directory / "manager.json"

    @property
    def lock(self) -> Path:
        """Locked by the manager's tether as long as it lives."""
        return self.directory / "manager.lock"

    @property
    def turn(self) -> Path:
        """Locked while somebody starts or stops the manager, so that two do not at once."""
        return self.directory / "turn.lock"

    @property
    def log(self) -> Path:
        """What supervisord and its tether say."""
        return self.logs / "manager.log"

    @property
    def socket(self) -> Path:
        """Where supervisord answers; in the system's temporary folder when our own path is too long."""
        near = self.directory / "manager.sock"
        if len(os.fsencode(near)) <= LONGEST_SOCKET_PATH:
            return near
        short = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        return Path(tempfile.gettempdir(), f"penstock-{os.getuid()}-{short}", "manager.sock")

    def state(self, name: str) -> Path:
        """What the tether of a program, or of the manager, last told of it."""
        return self.states / f"{name}.json"

    def spec(self, name: str, fingerprint: str) -> Path:
        """What a program's tether is told; another program text is another file, so it is restarted."""
        return self.programs / f"{name}-{fingerprint}.json"

    def program_log(self, name: str) -> Path:
        """What the program says; older parts beside it, with a number at the end."""
        return self.logs / f"{name}.log"
