"""The errors that quality raises.

QualityError
├── NoBatchesYetError   the stream has committed no batch, so there is nothing to audit
├── DamagedTableError   a table cannot be read
├── NoTableError        a table does not exist
├── QuarantineError     a quarantine operation is not possible
├── NoSuiteError        a topic or table has no expectation suite
└── SuiteError          a suite is invalid
    └── NotCheckableInStreamError   an expectation cannot be checked record by record
"""

from collections.abc import Sequence
from pathlib import Path

from penstock.core.display_path import display_path
from penstock.core.errors import PenstockError


class QualityError(PenstockError):
    """The root of the errors of quality. The message says what failed, where, and what to do."""

    exit_code = 1


class NoBatchesYetError(QualityError):
    """The stream has committed no batch, so there is nothing to audit."""


class DamagedTableError(QualityError):
    """A table lists missing files or cannot be read."""

    def __init__(self, table: object, finding: str) -> None:
        self.table, self.finding = table, finding
        super().__init__(f"{table} {finding}")


class NoTableError(QualityError):
    """A table does not exist. The `files` check decides whether it must exist."""


class QuarantineError(QualityError):
    """A record is not in quarantine, or the requested decision is not allowed."""


class NoSuiteError(QualityError):
    """The topic or table has no expectation suite."""

    exit_code = 2


class SuiteError(QualityError):
    """A suite is invalid: the file, the expectation, what is wrong, and how to fix it."""

    exit_code = 2

    def __init__(self, location: object, expectation: str, finding: str, fix: str) -> None:
        place = display_path(location) if isinstance(location, Path) else location
        end = "" if fix.endswith("?") else "."
        super().__init__(f"{place}: {expectation}: {finding}. {fix}{end}")


class CombinedSuiteError(SuiteError):
    """Several problems of one suite, each on a line."""

    def __init__(self, problems: Sequence[SuiteError]) -> None:
        QualityError.__init__(self, "\n".join(map(str, problems)))


class NotCheckableInStreamError(SuiteError):
    """An expectation that cannot be checked record by record, or that could stop a stream."""

    def __init__(self, expectation: str, finding: str, fix: str) -> None:
        self.expectation, self.finding, self.fix = expectation, finding, fix
        super().__init__("in the stream", expectation, finding, fix)
