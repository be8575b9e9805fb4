"""Readiness of programs: how a program reports to its tether that it works.

A running process proves little: on a busy machine a program may fail only after seconds. A program without a port
reports readiness by creating a file, whose path its tether passes in a variable.
"""

import os
from pathlib import Path

READY_FILE_VARIABLE = "PENSTOCK_READY_FILE"
"""The variable with the ready file of a program; set by its tether, not a setting."""


def report_ready() -> None:
    """Report that this process is ready; does nothing without a ready file. May be called again."""
    ready_file = os.environ.get(READY_FILE_VARIABLE)
    if ready_file is not None:
        Path(ready_file).touch()
