"""Running the commands of a bootstrap, and saying what goes on."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from penstock.infra.errors import BootstrapError
from penstock.infra.kernel import die_with_parent

_started = time.monotonic()


def say(what: str) -> None:
    """Tell the person who waits what happens now."""
    sys.stdout.write(f"[{time.monotonic() - _started:5.1f} s] {what}\n")
    sys.stdout.flush()


def run(
    command: Sequence[str],
    problem: Callable[[str], str],
    environment: Mapping[str, str] | None = None,
    quiet: bool = True,
) -> str:
    """Run a command and return what it printed.

    It ends with this process, so that a bootstrap that is killed leaves nobody writing. Raises
    BootstrapError with `problem(the end of what it said)` when it fails. Without `quiet`, standard
    error goes to the terminal as it comes.
    """
    this = os.getpid()
    done = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if quiet else None,
        text=True,
        check=False,
        preexec_fn=lambda: None if die_with_parent(this) else os._exit(1),
    )
    if done.returncode != 0:
        raise BootstrapError(problem(_end_of((done.stdout or "") + (done.stderr or ""))))
    return done.stdout


def _end_of(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return " ".join(lines[-6:])[-600:] or "it said nothing"
