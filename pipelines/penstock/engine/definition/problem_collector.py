"""Collects the problems of a definition, so that a user sees all of them at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.engine.errors import CombinedDefinitionError, DefinitionError


class ProblemCollector:
    """The problems that were found so far, each once, in the order in which they were found."""

    def __init__(self) -> None:
        self._problems: dict[str, DefinitionError] = {}

    @property
    def problems(self) -> tuple[DefinitionError, ...]:
        """The problems that were found so far."""
        return tuple(self._problems.values())

    def add(self, error: DefinitionError) -> None:
        """Add an error. One that lists several problems adds each of them."""
        for problem in error.problems:
            self._problems.setdefault(str(problem), problem)

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Run a block, and add the DefinitionError that it raises instead of raising it."""
        try:
            yield
        except DefinitionError as error:
            self.add(error)

    def combine(self) -> DefinitionError:
        """Return the problems, at least one, as one error."""
        return self.problems[0] if len(self.problems) == 1 else CombinedDefinitionError(self.problems)

    def raise_problems(self) -> None:
        """Raise what was collected, if anything."""
        if self.problems:
            raise self.combine()
