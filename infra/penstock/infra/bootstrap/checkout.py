"""Where a checkout keeps what the bootstrap makes, and what that must correspond to."""

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path

PROFILES = ("run", "dev")
"""`run` has what the platform runs from; `dev` has that, and what checks and tests need."""


@dataclass(frozen=True)
class BootstrapCheckout:
    """The paths of one checkout."""

    root: Path

    @property
    def environment(self) -> Path:
        """The virtual environment."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """The environment's Python."""
        return self.environment / "bin" / "python"

    @property
    def tools_environment(self) -> Path:
        """A small environment of its own for the installer, which is not part of the platform."""
        return self.root / ".cache" / "tools"

    @property
    def tools_lock(self) -> Path:
        """The installer, with its hashes."""
        return self.root / "infra" / "bootstrap.lock"

    @property
    def build_lock(self) -> Path:
        """What builds packages that come as source, with hashes."""
        return self.root / "infra" / "build.lock"

    @property
    def jar_directory(self) -> Path:
        """The jar folder."""
        return self.root / ".penstock" / "jars"

    @property
    def bootstrap_lock_file(self) -> Path:
        """Locked while a bootstrap works."""
        return self.root / ".cache" / "bootstrap.lock"

    @property
    def stamp_file(self) -> Path:
        """Written last; tells what the environment was made from."""
        return self.environment / "penstock-made-from.json"

    @property
    def unfinished_marker(self) -> Path:
        """Stands while packages are being written: an environment with it in is made anew."""
        return self.environment / "penstock-unfinished"

    def requirements_lock(self, profile: str) -> Path:
        """The lock of a profile."""
        return self.root / ("requirements-dev.lock" if profile == "dev" else "requirements.lock")

    def compute_stamp(self, profile: str) -> str:
        """Say what an environment of this profile is made from: the same text, the same environment."""
        sources = (self.requirements_lock(profile), self.build_lock, self.root / "pyproject.toml")
        return json.dumps(
            {
                "profile": profile,
                "python": sys.version.split()[0],
                "root": str(self.root),
                **{source.name: hashlib.sha256(source.read_bytes()).hexdigest() for source in sources},
            }
        )

    def read_profile(self) -> str | None:
        """Return the profile that the environment was last made for, whether still current or not."""
        try:
            return str(json.loads(self.stamp_file.read_text("utf-8"))["profile"])
        except (OSError, ValueError, KeyError):
            return None
