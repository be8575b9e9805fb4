"""Every line of the page of parts is a command that there is; those that need nothing at work are run."""

import re

import click
import pytest
from tests.platform.parts import AT_WORK, LINES, words_of

from penstock.platform.cli.main import penstock


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_the_page_of_parts_is_a_command_that_there_is(line: str) -> None:
    words = words_of(line)
    command: click.Command = penstock
    while isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, line
        command = found
    command.make_context(line, words)


def test_what_is_said_of_pipelines_is_shown_without_anything_at_work(run) -> None:
    said = {}
    for line in LINES:
        if line not in AT_WORK:
            answer = run(*words_of(line))
            assert answer.code == 0, f"{line}: {answer.err}"
            said[line] = answer.out
    assert "data parallel: read clicks in 3 tasks" in said["penstock explain trending"]
    for kind in ("stateless", "stateful", "pipelined", "task parallel", "data parallel"):
        for line in ("penstock explain trending", "penstock explain funnel"):
            (words,) = re.findall(rf"^  {kind}: (.+)$", said[line], re.MULTILINE)
            assert words, f"{line} says nothing of what is {kind}"
    assert re.search(
        r"^logical plan\n  upsert .*\n(  +└─ .*\n)+", said["penstock explain trending"], re.MULTILINE
    )
    assert "flowchart" in said["penstock explain hashtags --mermaid"]
    assert '"physical"' in said["penstock explain hashtags --json"]
    assert "zeitgeist" in said["penstock demo --list"]
