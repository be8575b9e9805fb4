"""Running the commands of a bootstrap, and saying what goes on."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

from penstock.infra.errors import BootstrapError
from penstock.infra.linux_processes import die_with_parent

_STARTED_S = time.monotonic()


def report_step(message: str) -> None:
    """Tell the person who waits what happens now."""
    sys.stdout.write(f"[{time.monotonic() - _STARTED_S:5.1f} s] {message}\n")
    sys.stdout.flush()


def run_command(
    command: Sequence[str],
    describe_failure: Callable[[str], str],
    environment: Mapping[str, str] | None = None,
    is_quiet: bool = True,
) -> str:
    """Run a command and return what it printed.

    The command is killed with this process, so that a killed bootstrap leaves no writer. Raises BootstrapError
    with the end of the command's output if it fails. Without `is_quiet`, standard error goes to the terminal.
    """
    parent_pid = os.getpid()
    result = subprocess.run(
        command,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if is_quiet else None,
        text=True,
        check=False,
        preexec_fn=lambda: None if die_with_parent(parent_pid) else os._exit(1),
    )
    if result.returncode != 0:
        raise BootstrapError(describe_failure(_output_tail((result.stdout or "") + (result.stderr or ""))))
    return result.stdout


def _output_tail(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return " ".join(lines[-6:])[-600:] or "it said nothing"
