"""Every line of the page of parts is a command that there is, with arguments and options that it takes."""

import re
import shlex
from pathlib import Path

import click

from penstock.platform.cli.main import penstock

PAGE = Path("pipelines/docs/parts.md")


def test_every_line_of_the_page_of_parts_is_a_command_that_there_is() -> None:
    blocks = re.findall(r"```sh\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.strip().splitlines()]
    assert len(lines) > 12
    for line in lines:
        program, *words = shlex.split(line)
        assert program == "penstock", line
        command: click.Command = penstock
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, line
            command = found
        command.make_context(line, words)
