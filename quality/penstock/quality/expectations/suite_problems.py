"""Collects the problems of a suite, so that a user sees all of them at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.quality.errors import CombinedSuiteError, SuiteError


class SuiteProblemCollector:
    """The problems that were found so far."""

    def __init__(self) -> None:
        self._problems: list[SuiteError] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Run a block, and keep the SuiteError that it raises."""
        try:
            yield
        except SuiteError as error:
            self._problems.append(error)

    def raise_problems(self) -> None:
        """Raise what was collected, if anything."""
        if len(self._problems) == 1:
            raise self._problems[0]
        if self._problems:
            raise CombinedSuiteError(self._problems)
