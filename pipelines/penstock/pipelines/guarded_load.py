"""Runs the code of a pipeline's file so that it cannot end or block its caller."""

import contextvars
import ctypes
import sys
import threading
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from penstock.core.display_path import display_path
from penstock.engine.errors import DefinitionError

Loaded = TypeVar("Loaded")

IMPORT_TIMEOUT_S = 30.0
_hung_files: dict[Path, tuple[int, DefinitionError]] = {}
"""The files whose code did not end, each with its modification time: they are run again after a change only."""


class LoadInterruptedError(BaseException):
    """Ends the code of a file that exceeds its time limit; not an Exception, so that the file cannot catch it."""


def run_guarded(load: Callable[[], Loaded], file: Path, user_files: Iterable[Path]) -> Loaded:
    """Run the code of a file in a thread of its own, and return the result.

    Raises what the code raises. Raises DefinitionError, with the line, if it does not end within the time limit.
    """
    mtime_ns = file.stat().st_mtime_ns
    if file in _hung_files and _hung_files[file][0] == mtime_ns:
        raise _hung_files[file][1]
    results: list[Loaded] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(load())
        except BaseException as error:  # noqa: BLE001  # whatever the file raises is reported by the caller
            errors.append(error)

    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(run,), name=f"load of {file.name}", daemon=True)
    thread.start()
    thread.join(IMPORT_TIMEOUT_S)
    if thread.is_alive():
        error = _describe_hang(thread, file, [file, *user_files])
        _hung_files[file] = mtime_ns, error
        _interrupt(thread)
        raise error
    if errors and isinstance(errors[0], KeyboardInterrupt):
        raise RuntimeError("the file raises KeyboardInterrupt") from errors[0]
    if errors:
        raise errors[0]
    return results[0]


def _describe_hang(thread: threading.Thread, file: Path, user_files: Iterable[Path]) -> DefinitionError:
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001
    names = {str(path): path for path in user_files}
    lines = [(names[f.filename], f.lineno) for f in traceback.extract_stack(frame) if f.filename in names]
    location = display_path(*lines[-1]) if lines else display_path(file)
    problem = f"its code did not end within {IMPORT_TIMEOUT_S:g} s"
    fix = "Move slow work out of the module's top level. If the process still waits after the fix, restart it"
    return DefinitionError("the file", problem, fix, location)


def _interrupt(thread: threading.Thread) -> None:
    """Raise an exception in a thread, which ends a loop; a call that waits in C continues."""
    set_exception: Any = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_exception(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(LoadInterruptedError))
