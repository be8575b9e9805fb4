"""Collects the problems of a contract, so that a user sees all of them at once, each with its line."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from penstock.core.display_path import display_path
from penstock.core.source_tree import find_line
from penstock.ingestion.contracts.yaml_files import read_yaml_lines
from penstock.ingestion.errors import ContractError


@dataclass(frozen=True, slots=True)
class ContractProblem:
    """A sentence about a problem, and the path of the key that has it, such as `fields.2.type`."""

    text: str
    path: str = ""


class InvalidContractError(ContractError):
    """A contract has these problems, one in each line of the message."""

    def __init__(self, problems: Sequence[ContractProblem]) -> None:
        super().__init__("\n".join(problem.text for problem in problems))
        self.problems = tuple(problems)


class ContractProblemCollector:
    """The problems that were found so far, each once."""

    def __init__(self) -> None:
        self._problems: dict[str, ContractProblem] = {}

    @contextmanager
    def collect(self, path: str) -> Iterator[None]:
        """Run a block, and add the ContractError that it raises instead of raising it."""
        try:
            yield
        except InvalidContractError as error:
            for problem in error.problems:
                self._problems.setdefault(problem.text, problem)
        except ContractError as error:
            self._problems.setdefault(str(error), ContractProblem(str(error), path))

    def add(self, text: str, path: str) -> None:
        """Add a problem."""
        self._problems.setdefault(text, ContractProblem(text, path))

    @property
    def has_problems(self) -> bool:
        """Whether there are any."""
        return bool(self._problems)

    def raise_problems(self) -> None:
        """Raise InvalidContractError with what was collected, if anything."""
        if self._problems:
            raise InvalidContractError(tuple(self._problems.values()))


def locate_problems(error: ContractError, file: Path) -> ContractError:
    """Return the error with file and line in front of each problem, in the order of the file."""
    root = read_yaml_lines(file)
    problems = error.problems if isinstance(error, InvalidContractError) else (ContractProblem(str(error)),)
    located = []
    for problem in problems:
        line = find_line(root, problem.path) if problem.path else None
        located.append(
            (line or 0, ContractProblem(f"{display_path(file, line)}: {problem.text}", problem.path))
        )
    return InvalidContractError([problem for _, problem in sorted(located, key=itemgetter(0))])
