"""Everything that reading tables raises.

QueryError
├── UnknownTableError    no table has that name
├── VersionError         a table cannot be read as of that batch or time
├── StatementError       a statement is not a query, or not valid
├── DamagedRowsError     a file of a table is damaged
├── QueryTimeoutError    a query took longer than its limit
└── MissingLibraryError  a conversion needs a library that is not installed
"""

from typing import ClassVar

from penstock.core.errors import PenstockError


class QueryError(PenstockError):
    """The root of the errors of this package; the text is one line."""

    exit_code: ClassVar[int] = 2


class UnknownTableError(QueryError):
    """No table has that name."""


class VersionError(QueryError):
    """A table cannot be read as of that batch or time."""


class StatementError(QueryError):
    """A statement is not a query, or not valid."""


class DamagedRowsError(QueryError):
    """A file of a table is damaged, so that its rows may be wrong."""

    exit_code: ClassVar[int] = 1


class QueryTimeoutError(QueryError):
    """A query took longer than its limit."""

    exit_code: ClassVar[int] = 1


class MissingLibraryError(QueryError):
    """A conversion needs a library that is not installed."""
