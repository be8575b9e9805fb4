"""Everything that quality raises, drawn once.

QualityError
├── NothingYetError     a stream has committed nothing, so there is nothing to say about it
├── DamagedTableError   a table cannot be read as it is
├── NoTableError        a table is not there
├── QuarantineError     what is asked of the quarantine cannot be done
├── NoSuiteError        nothing is expected of that
└── SuiteError          a suite says something that cannot be: in which file, and what to write
    └── NotInStreamError    an expectation cannot be checked row by row
"""

from penstock.core.errors import PenstockError


class QualityError(PenstockError):
    """The root of what quality raises: its text says what was tried, where, and what to do."""

    exit_code = 1


class NoBatchesYetError(QualityError):
    """There is nothing to audit yet."""


class DamagedTableError(QualityError):
    """A table that names what is not there, or cannot be read: which one, and what was found."""

    def __init__(self, table: object, finding: str) -> None:
        self.table, self.finding = table, finding
        super().__init__(f"{table} {finding}")


class NoTableError(QualityError):
    """A table that is asked for and that is not there; whether it should be is for the check of files to say."""


class QuarantineError(QualityError):
    """A record that is not there, or that may not be decided on as asked."""


class NoSuiteError(QualityError):
    """No expectation suite exists for that topic or table."""

    exit_code = 2


class SuiteError(QualityError):
    """A suite that cannot be used: which expectation of which file, what was found, and what to write instead."""

    exit_code = 2

    def __init__(self, location: object, expectation: str, finding: str, fix: str) -> None:
        super().__init__(f"{location}: {expectation}: {finding}. {fix}.")


class NotCheckableInStreamError(SuiteError):
    """An expectation that no single row can meet or miss, or that is not safe to ask of each."""

    def __init__(self, expectation: str, finding: str, fix: str) -> None:
        self.expectation, self.finding, self.fix = expectation, finding, fix
        super().__init__("in the stream", expectation, finding, fix)
