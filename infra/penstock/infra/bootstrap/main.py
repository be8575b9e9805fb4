"""The bootstrap as a command: check the machine, make the environment, fetch the jars; again, do nothing."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from penstock.infra.bootstrap import environment
from penstock.infra.bootstrap.checkout import PROFILES, Checkout
from penstock.infra.bootstrap.requirements import mend, missing, require_space_and_access
from penstock.infra.bootstrap.steps import run, say
from penstock.infra.errors import BootstrapError, InfraError, NotInTimeError
from penstock.infra.files import held
from penstock.infra.jars import missing_jars

ROOT = Path(__file__).resolve().parents[4]
TURN_SECONDS = 900.0


def bootstrap(checkout: Checkout, profile: str) -> None:
    """Have the checkout ready; done before, it only looks, and takes less than a second.

    A `dev` environment is good for running too and stays one. Cut off at any point, the next call puts
    right what is unfinished. Raises InfraError.
    """
    lacking = missing()
    if lacking:
        mend(lacking, _ask if sys.stdin.isatty() else None)
    wanted = "dev" if checkout.present_profile() == "dev" else profile
    if environment.is_current(checkout, wanted) and not missing_jars(checkout.jars):
        return
    require_space_and_access(checkout)
    checkout.turn.parent.mkdir(exist_ok=True)
    with held(checkout.turn, TURN_SECONDS):
        if not environment.is_current(checkout, wanted):
            environment.make(checkout, wanted)
        _fetch_jars(checkout)
    say("ready")


def _fetch_jars(checkout: Checkout) -> None:
    absent = missing_jars(checkout.jars)
    if absent:
        say(f"fetching {len(absent)} jars for Spark and Kafka (checked by hash)")
        command = [str(checkout.python), "-m", "penstock.infra.jars", str(checkout.jars)]
        watched = sys.stderr.isatty()
        run(command if watched else [*command, "--quiet"], str, quiet=not watched)


def _ask(question: str) -> bool:
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def main(arguments: Sequence[str]) -> int:
    """Make this checkout ready; return the exit code: 0, or 1 when it could not be done."""
    parser = argparse.ArgumentParser(prog="infra/bootstrap.py", description=main.__doc__)
    parser.add_argument("profile", choices=PROFILES, help="run: the platform; dev: checks and tests too")
    profile = parser.parse_args(arguments).profile
    try:
        bootstrap(Checkout(ROOT), profile)
    except KeyboardInterrupt:
        return _fail("Stopped. Say it again to go on.", 130)
    except NotInTimeError:
        return _fail("Another bootstrap of this checkout has not come to its end; try again.", 1)
    except (BootstrapError, InfraError) as error:
        return _fail(str(error), 1)
    except OSError as error:
        return _fail(f"{error.filename or 'A file'}: {error.strerror}. Mend that, and say it again.", 1)
    return 0


def _fail(what: str, code: int) -> int:
    sys.stderr.write(what + "\n")
    return code
