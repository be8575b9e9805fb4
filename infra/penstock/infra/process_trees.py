"""The descendants of a process, and their end; a process that is already gone is no error."""

import psutil


def list_descendants(process: psutil.Process) -> list[psutil.Process]:
    """Return the children of a process, with theirs; none if the process is gone."""
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def kill_process(process: psutil.Process) -> None:
    """Send SIGKILL."""
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
