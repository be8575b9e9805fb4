"""How a program tells whoever keeps it that it does its work now.

Having run for a while proves little: on a busy machine a program may take seconds to find that it cannot
work. One that answers at no port says so by a file, of which its tether told it.
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
