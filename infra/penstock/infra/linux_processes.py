"""What Linux offers for never leaving a process behind. Standard library only; quick to import."""

import ctypes
import os
import signal
from pathlib import Path

_SET_PARENT_DEATH_SIGNAL = 1
_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent_pid: int, death_signal: signal.Signals = signal.SIGKILL) -> bool:
    """Ask to be sent a signal when the parent ends; return False if it has ended already.

    The parent is the thread that forked this process. The wish outlives exec; children do not inherit it.
    """
    _prctl(_SET_PARENT_DEATH_SIGNAL, death_signal)
    return os.getppid() == parent_pid


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, in init's place."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def list_children(pid: int | None = None) -> list[int]:
    """Return the direct children of a process with one thread, this one without a pid."""
    pid = os.getpid() if pid is None else pid
    children_file = Path(f"/proc/{pid}/task/{pid}/children")
    if children_file.exists():
        return [int(child) for child in children_file.read_text().split()]
    processes = (entry for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [int(process.name) for process in processes if _read_parent_pid(process) == pid]


def _read_parent_pid(process_directory: Path) -> int | None:
    try:
        status = (process_directory / "stat").read_text()
    except OSError:
        return None  # it has ended meanwhile
    return int(status.rpartition(")")[2].split()[1])


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        error_number = ctypes.get_errno()
        raise OSError(error_number, f"prctl({option}, {value}): {os.strerror(error_number)}")
