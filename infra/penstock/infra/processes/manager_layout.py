"""Paths of the process manager's files."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

MAX_SOCKET_PATH_BYTES = 90
"""The path of a unix socket has at most 107 bytes, and supervisord appends its pid during startup."""


@dataclass(frozen=True)
class ManagerLayout:
    """The files of one manager: `directory` is private, `logs` may be shared."""

    directory: Path
    log_directory: Path

    @property
    def config_file(self) -> Path:
        """Configuration of supervisord."""
        return self.directory / "supervisord.conf"

    @property
    def index_file(self) -> Path:
        """Index of the programs, in start order."""
        return self.directory / "programs.json"

    @property
    def spec_directory(self) -> Path:
        """Folder of the tether specs of the programs."""
        return self.directory / "programs"

    @property
    def state_directory(self) -> Path:
        """Folder of the last state that each tether reported."""
        return self.directory / "state"

    @property
    def keeper_spec_file(self) -> Path:
        """Spec of the tether around supervisord."""
        return self.directory / "manager.json"

    @property
    def keeper_lock_file(self) -> Path:
        """Lock that the manager's tether holds while it lives."""
        return self.directory / "manager.lock"

    @property
    def operation_lock_file(self) -> Path:
        """Lock that is held while the manager starts or stops."""
        return self.directory / "turn.lock"

    @property
    def manager_log_file(self) -> Path:
        """Log of supervisord and its tether."""
        return self.log_directory / "manager.log"

    @property
    def socket_path(self) -> Path:
        """Socket of supervisord; in the system's temporary folder if this folder's path is too long."""
        preferred = self.directory / "manager.sock"
        if len(os.fsencode(preferred)) <= MAX_SOCKET_PATH_BYTES:
            return preferred
        digest = hashlib.sha256(os.fsencode(self.directory)).hexdigest()[:16]
        return Path(tempfile.gettempdir(), f"penstock-{os.getuid()}-{digest}", "manager.sock")

    def state_file(self, name: str) -> Path:
        """Return the file with the last state of a program's tether, or of the manager's."""
        return self.state_directory / f"{name}.json"

    def spec_file(self, name: str, fingerprint: str) -> Path:
        """Return the spec file of a program; a changed program has another file, so it is restarted."""
        return self.spec_directory / f"{name}-{fingerprint}.json"

    def program_log_file(self, name: str) -> Path:
        """Return the log of a program; older parts have a number appended."""
        return self.log_directory / f"{name}.log"
