"""What tests of the process manager share."""

from collections.abc import Callable

import psutil

from penstock.infra.processes import Manager, Program

MakeProgram = Callable[..., Program]
Left = Callable[[], list[psutil.Process]]


def state_of(manager: Manager, name: str) -> str:
    """What the manager says of one of its programs."""
    return next(status.state for status in manager.status() if status.name == name)
