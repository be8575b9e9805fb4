"""Where the process manager keeps what: every path is decided here."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

MAX_SOCKET_PATH_BYTES = 90
"""A unix socket's path holds 107 bytes, and supervisord adds its pid to it while it starts."""


@dataclass(frozen=True)
class ManagerLayout:
    """The files of one manager: `directory` is its own, `logs` may be shared."""

    directory: Path
    log_directory: Path

    @property
    def config_file(self) -> Path:
        """What supervisord reads."""
        return self.directory / "supervisord.conf"

    @property
    def index_file(self) -> Path:
        """Which programs there are, in start order."""
        return self.directory / "programs.json"

    @property
    def spec_directory(self) -> Path:
        """Holds what each program's tether is told."""
        return self.directory / "programs"

    @property
    def state_directory(self) -> Path:
        """Holds what each tether last told."""
        return self.directory / "state"

    @property
    def keeper_spec_file(self) -> Path:
        """What the tether around supervisord reads."""
        return self.directory / "manager.json"

    @property
    def keeper_lock_file(self) -> Path:
        """Locked by the manager's tether as long as it lives."""
        return self.directory / "manager.lock"

    @property
    def operation_lock_file(self) -> Path:
        """Locked while somebody starts or stops the manager, so that two do not at once."""
        return self.directory / "turn.lock"

    @property
    def manager_log_file(self) -> Path:
        """What supervisord and its tether say."""
        return self.log_directory / "manager.log"

    @property
    def socket_path(self) -> Path:
        """Where supervisord answers; in the system's temporary folder when our own path is too long."""
        preferred = self.directory / "manager.sock"
        if len(os.fsencode(preferred)) <= MAX_SOCKET_PATH_BYTES:
            return preferred
        digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        return Path(tempfile.gettempdir(), f"penstock-{os.getuid()}-{digest}", "manager.sock")

    def state_file(self, name: str) -> Path:
        """What the tether of a program, or of the manager, last told of it."""
        return self.state_directory / f"{name}.json"

    def spec_file(self, name: str, fingerprint: str) -> Path:
        """What a program's tether is told; another program text is another file, so it is restarted."""
        return self.spec_directory / f"{name}-{fingerprint}.json"

    def program_log_file(self, name: str) -> Path:
        """What the program says; older parts beside it, with a number at the end."""
        return self.log_directory / f"{name}.log"
