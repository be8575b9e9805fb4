"""What `penstock status` says of the files behind streams: the invalid ones."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.platform.cli.text_table import shorten

if TYPE_CHECKING:
    from penstock.platform.services.definition_problems import DefinitionProblem


def find_invalid_files() -> "Sequence[DefinitionProblem]":
    """Return the problem of each contract, pipeline and suite that is invalid."""
    from penstock.platform.services.definition_problems import find_definition_problems

    return list(find_definition_problems())


def render_invalid_files(problems: "Sequence[DefinitionProblem]", width: int | None) -> list[str]:
    """Return the lines of each problem; nothing if all files are valid."""
    if not problems:
        return []
    lines = [line for problem in problems for line in problem.message.splitlines()]
    return [
        "",
        f"{len(problems)} invalid {'file' if len(problems) == 1 else 'files'} (the other files are not affected):",
        *(shorten(line, width) for line in lines),
    ]
