"""Which Java runs the broker, Spark and Ivy.

Only the standard library is used here: the bootstrap asks before anything is installed.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.errors import JavaMissingError

OLDEST_JAVA = 17
"""Spark 4.2 and Kafka 4.3 run on nothing older."""

JAVA_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")
"""Names to try in turn: distributions carry different versions."""

INSTALLED_JAVAS = Path("/usr/lib/jvm")


@dataclass(frozen=True)
class JavaRuntime:
    """A Java that was found: its home folder and its feature version (17, 21 …)."""

    home: Path
    version: int

    @property
    def command(self) -> Path:
        """The `java` program of this runtime."""
        return self.home / "bin" / "java"


def find_java(environment: Mapping[str, str] | None = None, installed: Path | None = None) -> JavaRuntime:
    """Find a Java that is new enough: JAVA_HOME first, then PATH, then what the system has installed.

    Promises a runtime whose version was asked of it. Raises JavaMissingError, which names every
    place that was looked at, when there is none.
    """
    looked_at: list[str] = []
    environment = os.environ if environment is None else environment
    installed = INSTALLED_JAVAS if installed is None else installed
    for place, home in _candidates(environment, installed):
        version = java_version(home)
        if version is not None and version >= OLDEST_JAVA:
            return JavaRuntime(home, version)
        looked_at.append(f"{place}: {'not a Java' if version is None else f'Java {version}'} at {home}")
    seen = "; ".join(looked_at) or "JAVA_HOME is unset and no java is on PATH or in " + str(installed)
    raise JavaMissingError(
        f"Java {OLDEST_JAVA} or newer is needed and was not found ({seen}). "
        f"Install one, on Debian or Ubuntu with: apt-get install {offered(JAVA_PACKAGES, environment)}"
    )


def offered(packages: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Return the first of some packages that the system's package manager knows; the first if nobody can tell."""
    asked = shutil.which("apt-cache", path=(os.environ if environment is None else environment).get("PATH"))
    for package in packages if asked else ():
        known = subprocess.run([str(asked), "show", package], capture_output=True, check=False)
        if known.returncode == 0 and known.stdout:
            return package
    return packages[0]


def java_version(home: Path) -> int | None:
    """Return the feature version of the Java in a folder, or None where there is none that answers."""
    release = home / "release"
    if (home / "bin" / "java").exists() and release.is_file():
        found = re.search(r'^JAVA_VERSION="(\d+)', release.read_text("utf-8"), re.MULTILINE)
        if found:
            return int(found[1])
    return _version_by_asking(home)


def _version_by_asking(home: Path) -> int | None:
    try:
        answer = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(\d+)', answer.stderr)
    return int(found[1]) if found else None


def _candidates(environment: Mapping[str, str], installed: Path) -> Iterator[tuple[str, Path]]:
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environment["JAVA_HOME"])
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    if on_path:
        yield "PATH", Path(on_path).resolve().parent.parent
    if installed.is_dir():
        for home in sorted(installed.iterdir(), reverse=True):
            if (home / "bin" / "java").exists():
                yield str(installed), home
