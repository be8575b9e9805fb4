"""The commands of docs/parts.md exist; those that need no running stack are run."""

import re

import click
import pytest
from tests.platform.parts_page import LINES, STACK_LINES, parse_arguments

from penstock.platform.cli.main import penstock


@pytest.mark.parametrize("line", LINES)
def test_each_line_of_the_page_is_a_valid_command(line: str) -> None:
    arguments = parse_arguments(line)
    command: click.Command = penstock
    while isinstance(command, click.Group):
        subcommand = command.get_command(click.Context(command), arguments.pop(0))
        assert subcommand is not None, line
        command = subcommand
    command.make_context(line, arguments)


def test_pipelines_are_explained_without_a_running_stack(run) -> None:
    outputs = {}
    for line in LINES:
        if line not in STACK_LINES:
            result = run(*parse_arguments(line))
            assert result.code == 0, f"{line}: {result.err}"
            outputs[line] = result.out
    assert "data parallel: read clicks in 3 tasks" in outputs["penstock explain trending"]
    for kind in ("stateless", "stateful", "pipelined", "task parallel", "data parallel"):
        for line in ("penstock explain trending", "penstock explain funnel"):
            (arguments,) = re.findall(rf"^  {kind}: (.+)$", outputs[line], re.MULTILINE)
            assert arguments, f"{line} says nothing of what is {kind}"
    assert re.search(
        r"^logical plan\n  upsert .*\n(  +└─ .*\n)+", outputs["penstock explain trending"], re.MULTILINE
    )
    assert "flowchart" in outputs["penstock explain hashtags --mermaid"]
    assert '"physical"' in outputs["penstock explain hashtags --json"]
    assert "zeitgeist" in outputs["penstock demo --list"]
