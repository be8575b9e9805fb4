"""The commands of the page docs/parts.md, and those that need a running stack."""

import re
import shlex
from pathlib import Path

PAGE = Path("pipelines/docs/parts.md")
LINES = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for line in block.strip().splitlines()
]
STACK_LINES = [line for line in LINES if not line.startswith(("penstock explain", "penstock demo"))]


def parse_arguments(line: str) -> list[str]:
    """Return the arguments of a command line."""
    program, *arguments = shlex.split(line)
    assert program == "penstock", line
    return arguments
