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


class QualityError(Exception):
    """The root of what quality raises: its text says what was tried, where, and what to do."""

    exit_code = 1


class NothingYetError(QualityError):
    """There is nothing to audit yet."""


class DamagedTableError(QualityError):
    """A table that names what is not there, or cannot be read: which one, and what was found."""

    def __init__(self, table: object, found: str) -> None:
        self.table, self.found = table, found
        super().__init__(f"{table} {found}")


class NoTableError(QualityError):
    """A table that is asked for and that is not there; whether it should be is for the check of files to say."""


class QuarantineError(QualityError):
    """A record that is not there, or that may not be decided on as asked."""


class NoSuiteError(QualityError):
    """Nobody has written what is expected of that topic or table."""


class SuiteError(QualityError):
    """A suite that cannot be used: which expectation of which file, what was found, and what to write instead."""

    exit_code = 2

    def __init__(self, where: object, expectation: str, found: str, fix: str) -> None:
        super().__init__(f"{where}: {expectation}: {found}. {fix}.")


class NotInStreamError(SuiteError):
    """An expectation that no single row can meet or miss, or that is not safe to ask of each."""

    def __init__(self, expectation: str, found: str, fix: str) -> None:
        self.expectation, self.found, self.fix = expectation, found, fix
        super().__init__("in the stream", expectation, found, fix)
