"""The virtual environment: created from the lock with hashes, with the project installed into it."""

import hashlib
import os
import shutil
import sys
from pathlib import Path

from penstock.infra.bootstrap.checkout import BootstrapCheckout
from penstock.infra.bootstrap.steps import report_step, run_command
from penstock.infra.errors import BootstrapError


def is_environment_current(checkout: BootstrapCheckout, profile: str) -> bool:
    """Return whether the environment is complete and matches the checkout."""
    if checkout.unfinished_marker.exists() or not (checkout.environment / "bin" / "penstock").exists():
        return False
    try:
        return checkout.python.exists() and checkout.stamp_file.read_text("utf-8") == checkout.compute_stamp(
            profile
        )
    except OSError:
        return False


def make_environment(checkout: BootstrapCheckout, profile: str) -> None:
    """Create or update the environment.

    An incomplete one, or one with another Python version, is created again. Raises BootstrapError.
    """
    installer = _ensure_installer(checkout)
    if not _is_intact(checkout):
        report_step("creating the virtual environment .venv")
        _remove_path(checkout.environment)
        run_command(
            [str(installer), "venv", "-q", "--python", sys.executable, str(checkout.environment)],
            lambda output: f"The virtual environment {checkout.environment} could not be created: {output}",
            _installer_environment(checkout),
        )
    checkout.unfinished_marker.touch()
    checkout.stamp_file.unlink(missing_ok=True)
    # Packages that come as source are built with these, and not with what their build would fetch.
    _run_installer(checkout, installer, ["install", "--require-hashes", "-r", str(checkout.build_lock)])
    report_step(f"installing packages from {checkout.requirements_lock(profile).name} (by hash)")
    lock = checkout.requirements_lock(profile)
    _run_installer(checkout, installer, ["sync", "--no-build-isolation", "--require-hashes", str(lock)])
    report_step("installing this checkout into it, editable")
    _run_installer(
        checkout, installer, ["install", "--no-deps", "--no-build-isolation", "-e", str(checkout.root)]
    )
    checkout.stamp_file.write_text(checkout.compute_stamp(profile), "utf-8")
    checkout.unfinished_marker.unlink()


def _is_intact(checkout: BootstrapCheckout) -> bool:
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    libraries = checkout.environment / "lib" / version / "site-packages"
    return checkout.python.exists() and libraries.is_dir() and not checkout.unfinished_marker.exists()


def _run_installer(checkout: BootstrapCheckout, installer: Path, arguments: list[str]) -> None:
    is_interactive = sys.stderr.isatty()
    quiet_options = [] if is_interactive else ["-q", "--no-progress"]
    run_command(
        [
            str(installer),
            "pip",
            arguments[0],
            *quiet_options,
            "--python",
            str(checkout.python),
            *arguments[1:],
        ],
        lambda output: (
            f"Packages could not be installed into {checkout.environment}: {output} "
            "(check the network and the disk space, and run the command again; it resumes)"
        ),
        _installer_environment(checkout),
        is_quiet=not is_interactive,
    )


def _ensure_installer(checkout: BootstrapCheckout) -> Path:
    """Return uv from its own environment, installed with pip and checked by hash."""
    expected_stamp = hashlib.sha256(checkout.tools_lock.read_bytes()).hexdigest()
    stamp_file = checkout.tools_environment / "made-from"
    installer = checkout.tools_environment / "bin" / "uv"
    if installer.exists() and stamp_file.exists() and stamp_file.read_text("utf-8") == expected_stamp:
        return installer
    report_step("downloading the installer (uv)")
    _remove_path(checkout.tools_environment)
    describe_failure = "The installer uv could not be downloaded: {} (check the network)".format
    run_command([sys.executable, "-m", "venv", str(checkout.tools_environment)], describe_failure)
    pip = [str(checkout.tools_environment / "bin" / "python"), "-m", "pip", "install", "-q", "--no-deps"]
    run_command([*pip, "--require-hashes", "-r", str(checkout.tools_lock)], describe_failure)
    stamp_file.write_text(expected_stamp, "utf-8")
    return installer


def _installer_environment(checkout: BootstrapCheckout) -> dict[str, str]:
    """Return the variables for uv: use the system's certificates, and pip's index if only pip has one."""
    variables = {"UV_SYSTEM_CERTS": "1", "VIRTUAL_ENV": str(checkout.environment)}
    if not any(os.environ.get(name) for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL")):
        index = os.environ.get("PIP_INDEX_URL") or _read_pip_setting(checkout, "global.index-url")
        variables |= {"UV_DEFAULT_INDEX": index} if index else {}
    return variables


def _read_pip_setting(checkout: BootstrapCheckout, name: str) -> str:
    pip = [str(checkout.tools_environment / "bin" / "python"), "-m", "pip", "config", "get", name]
    try:
        return run_command(pip, str).strip()
    except BootstrapError:
        return ""  # pip fails if it is not set


def _remove_path(directory: Path) -> None:
    if directory.is_symlink() or directory.is_file():
        directory.unlink()
    elif directory.exists():
        shutil.rmtree(directory)
