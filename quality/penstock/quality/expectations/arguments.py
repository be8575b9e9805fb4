"""Reads the arguments of an expectation one by one. Refuses arguments that are unknown or not safe in a stream."""

import math
from collections.abc import Mapping
from datetime import date
from typing import Any

from penstock.core.names import suggest_or_list
from penstock.engine.definition.predicates import quote_column
from penstock.engine.definition.predicates import sql_literal as text_of
from penstock.quality.errors import NotCheckableInStreamError
from penstock.quality.expectations.suite import Expectation

ColumnTypes = Mapping[str, str]
"""The Spark type of each column and of each member of a struct, by path, without the digits of a decimal."""

NUMERIC_TYPES = frozenset({"INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL", "SMALLINT", "TINYINT"})
INTEGER_TYPES = frozenset({"INT", "BIGINT", "SMALLINT", "TINYINT"})
MULTI_ROW_ARGUMENTS = {"mostly": 1, "row_condition": None, "condition_parser": None}
"""Arguments that need several rows, each with the value at which it has no effect."""

IGNORED_ARGUMENTS = frozenset(
    {"severity", "catch_exceptions", "result_format", "description", "meta", "notes"}
)
"""Arguments that do not change a verdict."""


class ExpectationArguments:
    """The arguments of an expectation. Each is taken once, and none may remain."""

    def __init__(self, expectation: Expectation, columns: ColumnTypes) -> None:
        self._expectation = expectation
        self._columns = columns
        self._remaining = {
            name: value
            for name, value in expectation.kwargs.items()
            if name not in IGNORED_ARGUMENTS and name not in MULTI_ROW_ARGUMENTS
        }

    def take(self, name: str, default: Any = None) -> Any:
        """Take an argument."""
        return self._remaining.pop(name, default)

    def take_flag(self, name: str, *, default: bool = False) -> bool:
        """Take a boolean argument. Strings are refused; the library would accept some of them."""
        value = self.take(name, default)
        if not isinstance(value, bool):
            raise self.refusal(f"{name} is {value!r}", "Write true or false")
        return value

    def take_texts(self, name: str) -> list[str]:
        """Take an argument that is a non-empty list of strings."""
        value = self.take(name)
        if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
            raise self.refusal(f"{name} is {value!r}", "Give a list of strings")
        return value

    def take_column(self, name: str = "column") -> tuple[str, str]:
        """Take the name of a column, and return its SQL and its type."""
        return self.resolve_column(self.take(name))

    def resolve_column(self, column: Any) -> tuple[str, str]:
        """Return the SQL and the type of a column."""
        if not isinstance(column, str) or column not in self._columns:
            fix = suggest_or_list(str(column), self._columns, "Use one of")
            raise self.refusal(f"unknown field {column!r}", fix)
        return ".".join(map(quote_column, column.split("."))), self._columns[column]

    def refuse_remaining(self) -> None:
        """Refuse arguments that nothing has taken."""
        if self._remaining:
            raise self.refusal(
                f"{', '.join(self._remaining)} is not supported in a stream",
                "Remove it, or check it on the table",
            )

    def refusal(self, finding: str, fix: str) -> NotCheckableInStreamError:
        """Return the error that refuses the expectation."""
        return NotCheckableInStreamError(self._expectation.name, finding, fix)

    def take_text_column(self, name: str = "column") -> str:
        """Take the name of a text column."""
        sql, kind = self.take_column(name)
        if kind != "STRING":
            raise self.refusal(f"{sql} is {kind}", "Use a text field")
        return sql

    def check_comparable(self, kind: str, values: list[Any]) -> None:
        """Refuse values of another type than the column: a comparison with them would stop the stream."""
        for value in values:
            if value is not None and not is_comparable(kind, value):
                raise self.refusal(
                    f"{value!r} cannot be compared with {kind}", "Use values of the field's type"
                )


def sql_literal(value: Any) -> str:
    """Return a value as an SQL literal."""
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


def is_comparable(kind: str, value: Any) -> bool:
    """Tell whether a column of a type can be compared with a value, whatever the column contains."""
    match value:
        case bool():
            return kind == "BOOLEAN"
        case int():
            return kind in NUMERIC_TYPES and abs(value) < 2**63
        case float():
            return kind in NUMERIC_TYPES - INTEGER_TYPES or kind in INTEGER_TYPES
        case str():
            return kind == "STRING" or (kind == "DATE" and _is_date(value))
        case _:
            return False


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False
