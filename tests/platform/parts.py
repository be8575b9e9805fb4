"""The lines of the page of parts, and which of them look at a stack that runs."""

import re
import shlex
from pathlib import Path

PAGE = Path("pipelines/docs/parts.md")
LINES = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for line in block.strip().splitlines()
]
AT_WORK = [line for line in LINES if not line.startswith(("penstock explain", "penstock demo"))]


def words_of(line: str) -> list[str]:
    """The words of a line, without the program."""
    program, *words = shlex.split(line)
    assert program == "penstock", line
    return words
