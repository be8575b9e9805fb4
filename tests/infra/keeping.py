"""What tests of the process manager share."""

from collections.abc import Callable

import psutil

from penstock.infra.processes import ProcessManager, Program

MakeProgram = Callable[..., Program]
Left = Callable[[], list[psutil.Process]]


def state_of(manager: ProcessManager, name: str) -> str:
    """What the manager says of one of its programs."""
    return next(status.state for status in manager.list_statuses() if status.name == name)
