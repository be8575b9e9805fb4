"""Finding the Java that runs the broker, Spark and Ivy.

Uses only the standard library, because the bootstrap calls it before anything is installed.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.infra.errors import JavaMissingError

MIN_JAVA_VERSION = 17
"""The oldest version that runs both Spark 4.2 and Kafka 4.3."""

JAVA_PACKAGES = ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "default-jre-headless")
"""Package names to try in order; distributions have different versions."""

SYSTEM_JVM_DIRECTORY = Path("/usr/lib/jvm")


@dataclass(frozen=True)
class JavaRuntime:
    """A Java runtime: its home folder and its feature version (17, 21 …)."""

    home: Path
    version: int

    @property
    def command(self) -> Path:
        """The `java` program of this runtime."""
        return self.home / "bin" / "java"


def find_java(environment: Mapping[str, str] | None = None, jvm_directory: Path | None = None) -> JavaRuntime:
    """Find a Java that is new enough: JAVA_HOME first, then PATH, then what the system has installed.

    Promises a runtime whose version was asked of it. Raises JavaMissingError, which names every
    place that was looked at, when there is none.
    """
    rejected: list[str] = []
    environment = os.environ if environment is None else environment
    jvm_directory = SYSTEM_JVM_DIRECTORY if jvm_directory is None else jvm_directory
    for source, home in _java_candidates(environment, jvm_directory):
        version = read_java_version(home)
        if version is not None and version >= MIN_JAVA_VERSION:
            return JavaRuntime(home, version)
        rejected.append(f"{source}: {'not a Java' if version is None else f'Java {version}'} at {home}")
    details = "; ".join(rejected) or "JAVA_HOME is unset and no java is on PATH or in " + str(jvm_directory)
    raise JavaMissingError(
        f"Java {MIN_JAVA_VERSION} or newer is needed and was not found ({details}). "
        "Install one, on Debian or Ubuntu with: "
        f"apt-get install {first_available_package(JAVA_PACKAGES, environment)}"
    )


def first_available_package(packages: Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """Return the first package that the system's package manager knows; the first of all if that is unknown."""
    apt_cache = shutil.which(
        "apt-cache", path=(os.environ if environment is None else environment).get("PATH")
    )
    for package in packages if apt_cache else ():
        query = subprocess.run([str(apt_cache), "show", package], capture_output=True, check=False)
        if query.returncode == 0 and query.stdout:
            return package
    return packages[0]


def read_java_version(home: Path) -> int | None:
    """Return the feature version of the Java in a folder, or None if it does not answer."""
    release_file = home / "release"
    if (home / "bin" / "java").exists() and release_file.is_file():
        match = re.search(r'^JAVA_VERSION="(\d+)', release_file.read_text("utf-8"), re.MULTILINE)
        if match:
            return int(match[1])
    return _run_java_version(home)


def _run_java_version(home: Path) -> int | None:
    try:
        result = subprocess.run(
            [home / "bin" / "java", "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(\d+)', result.stderr)
    return int(match[1]) if match else None


def _java_candidates(environment: Mapping[str, str], jvm_directory: Path) -> Iterator[tuple[str, Path]]:
    if environment.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(environment["JAVA_HOME"])
    path_java = shutil.which("java", path=environment.get("PATH", os.defpath))
    if path_java:
        yield "PATH", Path(path_java).resolve().parent.parent
    if jvm_directory.is_dir():
        for home in sorted(jvm_directory.iterdir(), reverse=True):
            if (home / "bin" / "java").exists():
                yield str(jvm_directory), home
