"""What the machine has: Java, jars, Python packages as locked, room on the disk, folders to write in."""

import os
import re
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from penstock.infra.jars import missing_jars
from penstock.infra.java import find_java
from penstock.platform.doctor.finding import Finding, look
from penstock.platform.errors import RequirementError
from penstock.platform.settings import Settings

FREE_MB = 1_000
"""What a stack needs to start and to run for a while; it grows with what is kept of the topics."""

LOCK = "requirements.lock"
_PINNED = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^ ;\\]+)([^\\]*)", re.MULTILINE)


def installed(settings: Settings) -> Iterator[Finding]:
    """Look at the machine; nothing of it is changed."""
    yield Finding("python", sys.version_info >= (3, 11), sys.version.split()[0])
    yield look("packages", lambda: _packages(settings.root / LOCK))
    yield look("java", _java)
    yield look("jars", lambda: _jars(settings.jars))
    yield look("home", lambda: _writable(settings.home, "PENSTOCK_HOME"))
    yield look("warehouse", lambda: _warehouse(settings.warehouse))
    yield look("disk", lambda: disk_room(settings.home))


def disk_room(folder: Path) -> str:
    """How much room there is; RequirementError where it is too little."""
    there = _nearest(folder)
    free = shutil.disk_usage(there).free // 1_000_000
    if free < FREE_MB:
        raise RequirementError(
            f"{there} has {free} MB free, and {FREE_MB} MB are needed: free some, "
            "or set PENSTOCK_HOME to a folder on another disk"
        )
    return f"{free // 1000} GB free"


def _java() -> str:
    java = find_java()
    return f"{java.version} in {java.home}"


def _jars(folder: Path) -> str:
    if missing := missing_jars(folder):
        raise RequirementError(
            f"{len(missing)} jars are not in {folder} as the lock has them, {missing[0]} the first: "
            "`penstock up` fetches them"
        )
    return f"as locked, in {folder}"


def _packages(lock: Path) -> str:
    if not lock.is_file():
        return "no lock file here to compare with"
    pinned = [match.groups() for match in _PINNED.finditer(lock.read_text("utf-8"))]
    # A line with a condition may be for another system or another Python.
    wrong = [
        f"{name} {_version(name) or 'missing'} instead of {wanted}"
        for name, wanted, condition in pinned
        if _version(name) != wanted and not condition.strip()
    ]
    if wrong:
        raise RequirementError(f"{'; '.join(wrong[:3])}: `make up` installs what {LOCK} says")
    return f"{len(pinned)} as locked"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _warehouse(place: str) -> str:
    if "://" in place:
        return f"{place}, which is not looked into: a stream that cannot write there says so"
    return _writable(Path(place), "PENSTOCK_WAREHOUSE")


def _writable(folder: Path, setting: str) -> str:
    there = _nearest(folder)
    if not there.is_dir():
        raise RequirementError(f"{there} is no folder: move it away, or set {setting}")
    if not os.access(there, os.W_OK | os.X_OK):
        raise RequirementError(f"{there} cannot be written to: change its owner, or set {setting}")
    return str(folder)


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())
