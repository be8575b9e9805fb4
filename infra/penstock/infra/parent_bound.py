"""Run a command that ends when its parent does: `python -m penstock.infra.parent_bound PARENT COMMAND…`.

For programs without children of their own, started by a test or a tool. The command takes this process's
place, so its pid is the one that the caller got. What the process manager runs has a tether instead.
"""

import os
import sys
from collections.abc import Sequence

from penstock.infra.linux_processes import die_with_parent


def parent_bound_command(command: Sequence[str]) -> list[str]:
    """Return the command that runs another one as long as this process lives."""
    return [sys.executable, "-m", "penstock.infra.parent_bound", str(os.getpid()), *command]


if __name__ == "__main__":
    if not die_with_parent(int(sys.argv[1])):
        sys.exit(f"Process {sys.argv[1]}, which {sys.argv[2]} was to end with, has ended already.")
    os.execv(sys.argv[2], sys.argv[2:])  # noqa: S606  a program by its path, no shell
