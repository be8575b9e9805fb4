"""What a machine must bring before anything can be installed: looked at, and mended where that can be."""

import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.infra.bootstrap.checkout import Checkout
from penstock.infra.bootstrap.steps import say
from penstock.infra.errors import BootstrapError, JavaMissingError
from penstock.infra.java import JAVA_PACKAGES, find_java, offered

NEEDED_BYTES = 2_500 * 1024 * 1024
"""An environment for development is 1.5 GB; the rest is room to run in."""


@dataclass(frozen=True)
class Missing:
    """Something that the system's package manager can bring."""

    problem: str
    packages: tuple[str, ...]
    """Names to try in turn: distributions carry different versions."""


def require_space_and_access(checkout: Checkout) -> None:
    """Raise BootstrapError unless the checkout is writable and, before a first install, has room."""
    if not os.access(checkout.root, os.W_OK):
        raise BootstrapError(f"{checkout.root} is not writable; make it so, or clone into your own folder.")
    free = shutil.disk_usage(checkout.root).free
    if not checkout.stamp.exists() and free < NEEDED_BYTES:
        raise BootstrapError(
            f"{checkout.root} has {free // 1024**2} MB free and {NEEDED_BYTES // 1024**2} MB are needed. "
            "Free some space, or clone onto another disk."
        )


def missing() -> list[Missing]:
    """Return what the machine lacks."""
    found = []
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
        problem = (
            f"Python {version} at {sys.executable} cannot make virtual environments (ensurepip is missing)"
        )
        found.append(Missing(problem, (f"python{version}-venv", "python3-venv")))
    if shutil.which("git") is None:
        found.append(Missing("git is not on PATH", ("git",)))
    try:
        find_java()
    except JavaMissingError:
        found.append(Missing("Java 17 or newer is neither in JAVA_HOME nor on PATH", JAVA_PACKAGES))
    return found


def mend(lacking: Sequence[Missing], ask: Callable[[str], bool] | None) -> None:
    """Install what is lacking with apt-get, as root or, when the person agrees, through sudo.

    `ask` puts a question to a person; None when nobody is there. Raises BootstrapError that says what to
    install when that cannot be done or is not wanted.
    """
    problems = "; ".join(each.problem for each in lacking)
    by_hand = f"Install it: apt-get install {' '.join(offered(each.packages) for each in lacking)} (as root)"
    prefix = _privilege(problems, ask)
    if prefix is None:
        raise BootstrapError(f"{problems}. {by_hand}, then say `make` again.")
    say(f"{problems}: installing it with the system's package manager")
    _apt(prefix, ["update", "-q"], by_hand)
    packages = [offered(each.packages) for each in lacking]
    _apt(prefix, ["install", "-q", "-y", "--no-install-recommends", *packages], by_hand)
    still = missing()
    if still:
        raise BootstrapError(
            f"{still[0].problem}, even after {', '.join(packages)} was installed. {by_hand}."
        )


def _privilege(problems: str, ask: Callable[[str], bool] | None) -> list[str] | None:
    """Return what to put before apt-get; None when it cannot or may not be run."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return []
    if ask is not None and shutil.which("sudo") and ask(f"{problems}. Install it now with sudo apt-get?"):
        return ["sudo"]
    return None


def _apt(prefix: Sequence[str], words: Sequence[str], by_hand: str) -> None:
    # Not ended with this process: a package manager that is cut off leaves the system half changed.
    command = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", *words]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        raise BootstrapError(f"`{' '.join(command)}` failed with {done.returncode} (see above). {by_hand}.")
