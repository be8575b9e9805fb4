"""The bootstrap command: check the machine, create the virtual environment, download the jars."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.core.errors import PenstockError, WaitTimeoutError
from penstock.core.files import file_lock
from penstock.infra.bootstrap import virtual_environment
from penstock.infra.bootstrap.checkout import PROFILES, BootstrapCheckout
from penstock.infra.bootstrap.prerequisites import (
    find_missing_prerequisites,
    install_prerequisites,
    require_space_and_access,
)
from penstock.infra.bootstrap.steps import report_step, run_command
from penstock.infra.jars import find_missing_jars

CHECKOUT_ROOT = Path(__file__).resolve().parents[4]
BOOTSTRAP_LOCK_TIMEOUT_S = 900.0


def bootstrap_checkout(checkout: BootstrapCheckout, profile: str) -> None:
    """Set up the checkout; if nothing changed, this takes less than a second.

    A `dev` environment also runs the platform, and stays a `dev` one. After an interruption, the next call
    completes the setup. Raises InfraError.
    """
    missing_prerequisites = find_missing_prerequisites()
    if missing_prerequisites:
        install_prerequisites(missing_prerequisites, _ask_user if sys.stdin.isatty() else None)
    target_profile = "dev" if checkout.read_profile() == "dev" else profile
    if virtual_environment.is_environment_current(checkout, target_profile) and not find_missing_jars(
        checkout.jar_directory
    ):
        return
    require_space_and_access(checkout)
    checkout.bootstrap_lock_file.parent.mkdir(exist_ok=True)
    with file_lock(checkout.bootstrap_lock_file, BOOTSTRAP_LOCK_TIMEOUT_S):
        if not virtual_environment.is_environment_current(checkout, target_profile):
            virtual_environment.make_environment(checkout, target_profile)
        _fetch_missing_jars(checkout)
    report_step("ready")


def _fetch_missing_jars(checkout: BootstrapCheckout) -> None:
    missing_names = find_missing_jars(checkout.jar_directory)
    if missing_names:
        report_step(f"fetching {len(missing_names)} jars for Spark and Kafka (checked by hash)")
        command = [str(checkout.python), "-m", "penstock.infra.jars", str(checkout.jar_directory)]
        is_interactive = sys.stderr.isatty()
        run_command(command if is_interactive else [*command, "--quiet"], str, is_quiet=not is_interactive)


def _ask_user(question: str) -> bool:
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def main(arguments: Sequence[str]) -> int:
    """Set up this checkout; return the exit code: 0, or 1 if it failed."""
    parser = argparse.ArgumentParser(prog="infra/bootstrap.py", description=main.__doc__)
    parser.add_argument("profile", choices=PROFILES, help="run: the platform; dev: checks and tests too")
    profile = parser.parse_args(arguments).profile
    try:
        bootstrap_checkout(BootstrapCheckout(CHECKOUT_ROOT), profile)
    except KeyboardInterrupt:
        return _report_failure("Stopped. Run the command again to resume.", 130)
    except WaitTimeoutError:
        return _report_failure("Another bootstrap of this checkout is still running; try again later.", 1)
    except PenstockError as error:
        return _report_failure(str(error), 1)
    except OSError as error:
        return _report_failure(
            f"{error.filename or 'A file'}: {error.strerror}. Fix that, and run the command again.", 1
        )
    return 0


def _report_failure(message: str, exit_code: int) -> int:
    sys.stderr.write(message + "\n")
    return exit_code
