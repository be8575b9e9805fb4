"""Every line of the page of parts is a command that works on a running stack, and shows something."""

import re
import shlex
from pathlib import Path

import pytest
from tests.platform.whole.stack import ScratchStack, until

pytestmark = pytest.mark.whole

PAGE = Path("pipelines/docs/parts.md")
FINDS_SOMETHING = {"topics plan --environment production"}
"""Commands that end with 1 because what they compare differs."""


def lines() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.strip().splitlines()]


def test_every_line_of_the_page_of_parts_shows_something(running: ScratchStack) -> None:
    until((running.warehouse / "panes" / "sensor_minute" / "_delta_log").exists, 60, "the first panes")
    said = {}
    for line in lines():
        program, *arguments = shlex.split(line)
        assert program == "penstock"
        words = " ".join(arguments)
        done = running.run(*arguments, seconds=120)
        assert done.returncode == (1 if words in FINDS_SOMETHING else 0), (
            f"{line}: {done.stderr}{done.stdout}"
        )
        assert done.stdout.strip(), line
        said[words] = done.stdout
    assert "data parallel: read clicks in 3 tasks" in said["explain trending"]
    assert re.search(r"^sensors +3 +1 +7 days +[\d,]+$", said["topics list"], re.MULTILINE)
    assert len(said["topics list sensors"].splitlines()) == 4
