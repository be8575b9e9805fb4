"""Dagster's code server, as the stack runs it: it ends when the process that holds the code does, to be begun anew.

`dagster code-server` hands each call on to a child, which it replaces when somebody reloads the code and at no
other time. Without that child it would answer on its port, and nothing of sensors, schedules or runs would be done.
"""

import os
import runpy
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

POLL_INTERVAL_S = 1.0


def exit_when_code_process_ends() -> None:
    """Wait until a process that holds the code is there, and then until none is; then end this one at once."""
    had_code_process = False
    while (has_code_process := any(_probe_code_processes())) or not had_code_process:
        had_code_process = had_code_process or has_code_process
        time.sleep(POLL_INTERVAL_S)
    sys.stderr.write("the process that held the code has ended; this one ends too, and begins again\n")
    sys.stderr.flush()
    os._exit(1)  # its threads wait for calls that nobody answers


def _probe_code_processes() -> Iterator[bool]:
    """For each child of any thread of this process whether it holds code; one that has ended does not."""
    for children_file in Path("/proc/self/task").glob("*/children"):
        try:
            children = children_file.read_text("ascii").split()
        except OSError:
            continue  # the thread has ended meanwhile
        for child_pid in children:
            try:
                yield b"grpc" in Path("/proc", child_pid, "cmdline").read_bytes()  # empty once it has ended
            except OSError:
                continue


def main(arguments: list[str]) -> None:
    """Become Dagster's code server."""
    threading.Thread(target=exit_when_code_process_ends, name="code", daemon=True).start()
    sys.argv = ["dagster", *arguments]
    runpy.run_module("dagster", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
