"""The invalid definition files: contracts, pipelines and suites, each with its problem.

Run as a module, it prints them as JSON: a process that loaded the files earlier gets current problems so.
"""

import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from penstock.ingestion.contracts import load_catalog
from penstock.platform.services.expectations import load_all_suites
from penstock.platform.services.stream_catalog import find_invalid_pipelines

READ_TIMEOUT_S = 50

DefinitionKind = Literal["contract", "pipeline", "suite"]


class DefinitionProblem(msgspec.Struct, frozen=True):
    """An invalid file: what it defines, the name of that, and the error with file, line and fix."""

    kind: DefinitionKind
    name: str
    message: str


def find_definition_problems() -> Iterator[DefinitionProblem]:
    """Yield each invalid file. What a contract or suite breaks in pipelines is not repeated for each of them."""
    causes = [
        *_list_problems("contract", load_catalog().errors_by_topic),
        *_list_problems("suite", load_all_suites().errors_by_subject),
    ]
    yield from causes
    for problem in _list_problems("pipeline", find_invalid_pipelines()):
        if not any(cause.message in problem.message for cause in causes):
            yield problem


def read_current_problems() -> list[DefinitionProblem]:
    """Return the problems of the files as they are now, from a process of its own."""
    result = subprocess.run(
        [sys.executable, "-m", __name__], capture_output=True, check=True, timeout=READ_TIMEOUT_S
    )
    return msgspec.json.decode(result.stdout, type=list[DefinitionProblem])


def _list_problems(kind: DefinitionKind, errors: Mapping[str, Exception]) -> Iterator[DefinitionProblem]:
    return (DefinitionProblem(kind, name, str(error)) for name, error in errors.items())


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(list(find_definition_problems())))
