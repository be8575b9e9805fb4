"""Prerequisites of an installation: check them, and install missing ones if possible."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.infra.bootstrap.checkout import BootstrapCheckout
from penstock.infra.bootstrap.steps import report_step
from penstock.infra.errors import BootstrapError, JavaMissingError
from penstock.infra.java import JAVA_PACKAGES, find_java, first_available_package

REQUIRED_FREE_BYTES = 2_500 * 1024 * 1024
"""An environment for development is 1.5 GB; the rest is room to run in."""


@dataclass(frozen=True)
class MissingPrerequisite:
    """Something that the system's package manager can bring."""

    problem: str
    packages: tuple[str, ...]
    """Names to try in turn: distributions carry different versions."""


def require_space_and_access(checkout: BootstrapCheckout) -> None:
    """Raise BootstrapError unless the checkout is writable and, before a first install, has room."""
    if not os.access(checkout.root, os.W_OK):
        raise BootstrapError(f"{checkout.root} is not writable; make it so, or clone into your own folder.")
    free_bytes = shutil.disk_usage(checkout.root).free
    if not checkout.stamp_file.exists() and free_bytes < REQUIRED_FREE_BYTES:
        raise BootstrapError(
            f"{checkout.root} has {free_bytes // 1024**2} MB free and "
            f"{REQUIRED_FREE_BYTES // 1024**2} MB are needed. Free some space, or clone onto another disk."
        )


def find_missing_prerequisites() -> list[MissingPrerequisite]:
    """Return what the machine lacks."""
    prerequisites = []
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        problem = (
            f"Python {version} at {sys.executable} cannot make virtual environments (ensurepip is missing)"
        )
        prerequisites.append(MissingPrerequisite(problem, (f"python{version}-venv", "python3-venv")))
    if shutil.which("git") is None:
        prerequisites.append(MissingPrerequisite("git is not on PATH", ("git",)))
    try:
        find_java()
    except JavaMissingError:
        prerequisites.append(
            MissingPrerequisite("Java 17 or newer is neither in JAVA_HOME nor on PATH", JAVA_PACKAGES)
        )
    return prerequisites


def install_prerequisites(
    prerequisites: Sequence[MissingPrerequisite], ask: Callable[[str], bool] | None
) -> None:
    """Install missing packages with apt-get, as root or, if the user agrees, through sudo.

    `ask` asks the user a question; None without a terminal. Raises BootstrapError with the packages to install if
    that is not possible or not wanted.
    """
    problems = "; ".join(prerequisite.problem for prerequisite in prerequisites)
    wanted_packages = " ".join(
        first_available_package(prerequisite.packages) for prerequisite in prerequisites
    )
    instructions = f"Install it: apt-get install {wanted_packages} (as root)"
    prefix = _privilege_prefix(problems, ask)
    if prefix is None:
        raise BootstrapError(f"{problems}. {instructions}, then say `make` again.")
    report_step(f"{problems}: installing it with the system's package manager")
    _run_apt(prefix, ["update", "-q"], instructions)
    packages = [first_available_package(prerequisite.packages) for prerequisite in prerequisites]
    _run_apt(prefix, ["install", "-q", "-y", "--no-install-recommends", *packages], instructions)
    still_missing = find_missing_prerequisites()
    if still_missing:
        raise BootstrapError(
            f"{still_missing[0].problem}, even after {', '.join(packages)} was installed. {instructions}."
        )


def _privilege_prefix(problems: str, ask: Callable[[str], bool] | None) -> list[str] | None:
    """Return what to put before apt-get; None when it cannot or may not be run."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    if ask is not None and shutil.which("sudo") and ask(f"{problems}. Install it now with sudo apt-get?"):
        return ["sudo"]
    return None


def _run_apt(prefix: Sequence[str], arguments: Sequence[str], instructions: str) -> None:
    # Not ended with this process: a package manager that is cut off leaves the system half changed.
    command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *arguments]
    result = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if result.returncode != 0:
        raise BootstrapError(
            f"`{' '.join(command)}` failed with {result.returncode} (see above). {instructions}."
        )
