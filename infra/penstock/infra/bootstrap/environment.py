"""The virtual environment: made from the lock, every file by its hash, and the project put into it."""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from penstock.infra.bootstrap.checkout import Checkout
from penstock.infra.bootstrap.steps import run, say
from penstock.infra.errors import BootstrapError


def is_current(checkout: Checkout, profile: str) -> bool:
    """Say whether the environment is whole and made from just what the checkout holds now."""
    if checkout.unfinished.exists() or not (checkout.environment / "bin" / "penstock").exists():
        return False
    try:
        return checkout.python.exists() and checkout.stamp.read_text("utf-8") == checkout.made_from(profile)
    except OSError:
        return False


def make(checkout: Checkout, profile: str) -> None:
    """Make the environment, or bring it up to date.

    One whose making was cut off, or whose Python is gone or another, is made anew. Raises BootstrapError.
    """
    installer = _installer(checkout)
    if not _is_sound(checkout):
        say("making the virtual environment .venv")
        _remove(checkout.environment)
        run(
            [str(installer), "venv", "-q", "--python", sys.executable, str(checkout.environment)],
            lambda said: f"The virtual environment {checkout.environment} could not be made: {said}",
            _settings(checkout),
        )
    checkout.unfinished.touch()
    checkout.stamp.unlink(missing_ok=True)
    say(f"installing packages from {checkout.lock(profile).name} (by hash)")
    _install(checkout, installer, ["sync", "--require-hashes", str(checkout.lock(profile))])
    say("installing this checkout into it, editable")
    _install(checkout, installer, ["install", "--no-deps", "--no-build-isolation", "-e", str(checkout.root)])
    checkout.stamp.write_text(checkout.made_from(profile), "utf-8")
    checkout.unfinished.unlink()


def _is_sound(checkout: Checkout) -> bool:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    libraries = checkout.environment / "lib" / version / "site-packages"
    return checkout.python.exists() and libraries.is_dir() and not checkout.unfinished.exists()


def _install(checkout: Checkout, installer: Path, words: list[str]) -> None:
    watched = sys.stderr.isatty()
    quietly = [] if watched else ["-q", "--no-progress"]
    run(
        [str(installer), "pip", words[0], *quietly, "--python", str(checkout.python), *words[1:]],
        lambda said: (
            f"Packages could not be installed into {checkout.environment}: {said} "
            "(is there a network, and room on the disk? Then say it again: it goes on from what was fetched)"
        ),
        _settings(checkout),
        quiet=not watched,
    )


def _installer(checkout: Checkout) -> Path:
    """Return uv, in an environment of its own, made with pip and checked by hash like all else."""
    wanted = hashlib.sha256(checkout.tools_lock.read_bytes()).hexdigest()
    made = checkout.tools / "made-from"
    installer = checkout.tools / "bin" / "uv"
    if installer.exists() and made.exists() and made.read_text("utf-8") == wanted:
        return installer
    say("fetching the installer (uv)")
    _remove(checkout.tools)
    problem = "The installer uv could not be fetched: {} (is there a network?)".format
    run([sys.executable, "-m", "venv", str(checkout.tools)], problem)
    pip = [str(checkout.tools / "bin" / "python"), "-m", "pip", "install", "-q", "--no-deps"]
    run([*pip, "--require-hashes", "-r", str(checkout.tools_lock)], problem)
    made.write_text(wanted, "utf-8")
    return installer


def _settings(checkout: Checkout) -> dict[str, str]:
    """Return what uv is told: to trust what the system trusts, and pip's index where only pip has one."""
    settings = {"UV_SYSTEM_CERTS": "1", "VIRTUAL_ENV": str(checkout.environment)}
    if not any(os.environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")):
        index = os.environ.get("PIP_INDEX_URL") or _pip_setting(checkout, "global.index-url")
        settings |= {"UV_DEFAULT_INDEX": index} if index else {}
    return settings


def _pip_setting(checkout: Checkout, name: str) -> str:
    pip = [str(checkout.tools / "bin" / "python"), "-m", "pip", "config", "get", name]
    try:
        return run(pip, str).strip()
    except BootstrapError:
        return ""  # pip says by its exit code that it is not set


def _remove(directory: Path) -> None:
    if directory.is_symlink() or directory.is_file():
        directory.unlink()
    elif directory.exists():
        shutil.rmtree(directory)
