"""The arguments of an expectation, taken one by one; what is not known, or not safe in a stream, is refused."""

import math
from collections.abc import Mapping
from typing import Any

from penstock.pipelines.plan.predicates import literal as text_of
from penstock.pipelines.plan.predicates import quoted
from penstock.quality.errors import NotInStreamError
from penstock.quality.expectations.suite import Expectation

Columns = Mapping[str, str]
"""The type of each column, in Spark's words."""

NUMBERS = frozenset({"INT", "BIGINT", "FLOAT", "DOUBLE", "SMALLINT", "TINYINT"})
WHOLE = frozenset({"INT", "BIGINT", "SMALLINT", "TINYINT"})
BEYOND_ROWS = {"mostly": 1, "row_condition": None, "condition_parser": None}
"""Arguments that speak of many rows, or of which rows; each with the value at which it says nothing."""

IGNORED = frozenset({"severity", "catch_exceptions", "result_format", "description", "meta", "notes"})
"""Arguments that do not change a verdict."""


class Arguments:
    """The arguments of an expectation; each is taken once, and none may be left."""

    def __init__(self, one: Expectation, columns: Columns) -> None:
        self._one = one
        self._columns = columns
        self._left = {n: v for n, v in one.kwargs.items() if n not in IGNORED and n not in BEYOND_ROWS}

    def take(self, name: str, default: Any = None) -> Any:
        """Take an argument."""
        return self._left.pop(name, default)

    def said(self, name: str, *, default: bool = False) -> bool:
        """Take an argument that is true or false; the library reads some texts as one of them."""
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise self.refused(f"{name} is {value!r}", "Write true or false")
        return value

    def texts(self, name: str) -> list[str]:
        """Take an argument that is a list of texts; a text alone is no list."""
        value = self.take(name)
        if not isinstance(value, list) or not value or not all(isinstance(one, str) for one in value):
            raise self.refused(f"{name} is {value!r}", "Give a list of texts")
        return value

    def column(self, name: str = "column") -> tuple[str, str]:
        """Take the name of a column, and return its SQL and its type."""
        return self.named(self.take(name))

    def named(self, column: Any) -> tuple[str, str]:
        """Return the SQL and the type of a column."""
        if not isinstance(column, str) or column not in self._columns:
            fields = ", ".join(self._columns)
            raise self.refused(f"there is no field {column!r}", f"Name one of: {fields}")
        return quoted(column), self._columns[column]

    def done(self) -> None:
        """Refuse what was not asked for."""
        if self._left:
            raise self.refused(
                f"{', '.join(self._left)} is not known here", "Leave it out, or check it at rest"
            )

    def refused(self, found: str, fix: str) -> NotInStreamError:
        """Return the error that refuses the expectation."""
        return NotInStreamError(self._one.name, found, fix)

    def text(self, name: str = "column") -> str:
        """Take a column that must hold text."""
        sql, kind = self.column(name)
        if kind != "STRING":
            raise self.refused(f"{sql} is {kind}", "Name a field of text")
        return sql

    def comparable(self, kind: str, values: list[Any]) -> None:
        """Refuse values that a column of this type cannot be compared with: that would stop the stream."""
        for value in values:
            if value is not None and not fits(kind, value):
                raise self.refused(
                    f"{value!r} cannot be compared with {kind}", "Write values of the field's type"
                )


def literal(value: Any) -> str:
    """Return a value as SQL."""
    match value:
        case bool():
            return str(value).lower()
        case int():
            return f"{value}L" if abs(value) > 2**31 - 1 else str(value)
        case float() if math.isfinite(value):
            return f"{value!r}D"
        case float():
            return f"double('{value}')"
        case _:
            return text_of(str(value))


def fits(kind: str, value: Any) -> bool:
    """Tell whether a column of a type can be compared with a value, whatever the column holds."""
    match value:
        case bool():
            return kind == "BOOLEAN"
        case int():
            return kind in NUMBERS and abs(value) < 2**63
        case float():
            return kind in NUMBERS - WHOLE or kind in WHOLE
        case str():
            return kind == "STRING"
        case _:
            return False
