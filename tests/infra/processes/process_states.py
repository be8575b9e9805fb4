"""Helpers for tests of the process manager."""

from collections.abc import Callable

import psutil

from penstock.infra.processes import ProcessManager, Program

MakeProgram = Callable[..., Program]
ListProcesses = Callable[[], list[psutil.Process]]


def program_state(manager: ProcessManager, name: str) -> str:
    return next(status.state for status in manager.list_statuses() if status.name == name)
