"""Checks of the machine: Java, jars, Python packages, disk space, writable folders."""

import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from penstock.core.file_access import find_excess_mode
from penstock.engine.storage import ObjectStorePath
from penstock.infra.jars import find_missing_jars
from penstock.infra.java import find_java
from penstock.platform.doctor.finding import DoctorFinding, run_check
from penstock.platform.doctor.secret_checks import check_secrets
from penstock.platform.errors import RequirementError
from penstock.platform.settings import Settings

REQUIRED_FREE_MB = 1_000
"""The disk space that a stack needs to start and run for a while; retained topics and tables add to it."""

LOCK_FILE_NAME = "requirements.lock"
_PIN_PATTERN = re.compile(r"^([A-Za-z0-9_.-]+)(?:\[[^\]]*\])?==([^ ;\\]+)([^\\]*)", re.MULTILINE)


def check_installation(settings: Settings) -> Iterator[DoctorFinding]:
    """Check the machine; changes nothing."""
    yield DoctorFinding("python", sys.version_info >= (3, 11), sys.version.split()[0])
    yield run_check("packages", lambda: _check_packages(settings.root / LOCK_FILE_NAME))
    yield run_check("java", _check_java)
    yield run_check("jars", lambda: _check_jars(settings.jars))
    yield run_check("home", lambda: _check_writable(settings.home, "PENSTOCK_HOME"))
    yield check_file_access(settings)
    yield check_secrets(settings)
    if not isinstance(settings.warehouse_path, ObjectStorePath):
        yield run_check("warehouse", lambda: _check_writable(Path(settings.warehouse), "PENSTOCK_WAREHOUSE"))
    yield run_check("disk", lambda: check_disk_space(settings.home))


def check_disk_space(folder: Path) -> str:
    """Return the free disk space; raise RequirementError if it is too little."""
    existing_folder = _nearest_existing(folder)
    free_mb = shutil.disk_usage(existing_folder).free // 1_000_000
    if free_mb < REQUIRED_FREE_MB:
        raise RequirementError(
            f"{existing_folder} has {free_mb} MB free, and {REQUIRED_FREE_MB} MB are needed. Free some space, "
            "or set PENSTOCK_HOME to a folder on another disk"
        )
    return f"{free_mb // 1000} GB free"


def _check_java() -> str:
    java = find_java()
    return f"{java.version} in {java.home}"


def _check_jars(folder: Path) -> str:
    if missing := find_missing_jars(folder):
        raise RequirementError(
            f"{len(missing)} jars in {folder} are missing or differ from the lock, such as {missing[0]}. "
            "`penstock up` downloads them"
        )
    return f"match the lock, in {folder}"


def _check_packages(lock: Path) -> str:
    if not lock.is_file():
        return "no lock file to compare with"
    pins = [match.groups() for match in _PIN_PATTERN.finditer(lock.read_text("utf-8"))]
    # A line with a condition may be for another operating system or Python version.
    mismatches = [
        f"{name} {_installed_version(name) or 'missing'} instead of {pinned_version}"
        for name, pinned_version, condition in pins
        if _installed_version(name) != pinned_version and not condition.strip()
    ]
    if mismatches:
        raise RequirementError(
            f"{'; '.join(mismatches[:3])}. `make up` installs the versions of {LOCK_FILE_NAME}"
        )
    return f"{len(pins)} match the lock"


def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def check_file_access(settings: Settings) -> DoctorFinding:
    """Check that no more users than the setting says reach the home folder."""
    access, home = settings.file_access, settings.home
    if excess := find_excess_mode(home, access):
        others = "every user of this machine" if excess & stat.S_IRWXO else "the group"
        closed_mode = stat.S_IMODE(home.stat().st_mode) & ~excess
        return DoctorFinding(
            "file access",
            False,
            f"{home} can be read by {others}, with records, state and program files. "
            f"`chmod {closed_mode:o} {home}` closes it, and so does `penstock up`. "
            f"Or set PENSTOCK_FILE_ACCESS, which is {access}",
        )
    return DoctorFinding("file access", True, f"{access} may read")


def _check_writable(folder: Path, setting: str) -> str:
    existing_folder = _nearest_existing(folder)
    if not existing_folder.is_dir():
        raise RequirementError(f"{existing_folder} is not a folder. Move it away, or set {setting}")
    if not os.access(existing_folder, os.W_OK | os.X_OK):
        raise RequirementError(f"{existing_folder} is not writable. Change its owner, or set {setting}")
    return str(folder)


def _nearest_existing(folder: Path) -> Path:
    """Return the folder, or its nearest parent that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())
