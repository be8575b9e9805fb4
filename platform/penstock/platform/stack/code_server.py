"""Dagster's code server as the stack runs it: it exits when its code process exits, and is then restarted.

`dagster code-server` forwards each call to a child process. It replaces that child only when a user reloads the
code. Without the child the server still answers on its port, but runs no sensor, schedule or job.
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
    """Wait until a code process runs and then until none runs; then exit this process."""
    had_code_process = False
    while (has_code_process := any(_probe_code_processes())) or not had_code_process:
        had_code_process = had_code_process or has_code_process
        time.sleep(POLL_INTERVAL_S)
        sys.stderr.write("Code process exited; exiting to be restarted\n")
    sys.stderr.flush()
    os._exit(1)  # other threads still wait for calls that never return


def _probe_code_processes() -> Iterator[bool]:
    """Yield, for each child of any thread of this process, whether it is a live code process."""
    for children_file in Path("/proc/self/task").glob("*/children"):
        try:
            children = children_file.read_text("ascii").split()
        except OSError:
            continue  # the thread has ended in the meantime
        for child_pid in children:
            try:
                yield b"grpc" in Path("/proc", child_pid, "cmdline").read_bytes()  # empty once it has ended
            except OSError:
                continue


def main(arguments: list[str]) -> None:
    """Replace this program with Dagster's code server."""
    threading.Thread(target=exit_when_code_process_ends, name="code", daemon=True).start()
    sys.argv = ["dagster", *arguments]
    runpy.run_module("dagster", run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
