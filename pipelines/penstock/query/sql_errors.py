"""Turns errors of the SQL engine into one line with the nearest name."""

import re

from penstock.core.names import explain_unknown_name
from penstock.query.errors import StatementError

_UNKNOWN_TABLE = re.compile(r"table 'datafusion\.public\.(.+?)' not found")
_UNKNOWN_TABLE_OF_SCHEMA = re.compile(r"table 'datafusion\.(.+?)' not found")
_UNKNOWN_COLUMN = re.compile(r"No field named (?:[\w\"]+\.)?\"?([^\"\s]+?)\"?\.(?:\s|$)")
_VALID_COLUMNS = re.compile(r"Valid fields are (.+?)\.?$", re.DOTALL)
_PARSER_ERROR = re.compile(r'ParserError\("(.+)"\)')


def find_unknown_table(error_text: str) -> str | None:
    """Return the name of a table that the engine does not have."""
    match = _UNKNOWN_TABLE.search(error_text)
    return match[1] if match else None


def explain_sql_error(error_text: str) -> StatementError:
    """Return the error of an invalid statement, or of one that fails while it runs."""
    if match := _UNKNOWN_TABLE_OF_SCHEMA.search(error_text):
        return StatementError(
            f"there is no table {match[1]}. Names have no schema; put one with a dot in double quotes"
        )
    if match := _UNKNOWN_COLUMN.search(error_text):
        valid = _VALID_COLUMNS.search(error_text)
        columns = [] if valid is None else [_column_name(text) for text in valid[1].split(", ")]
        hint = ". Put it in double quotes" if match[1] in columns else ""
        return StatementError(explain_unknown_name("column", match[1], dict.fromkeys(columns)) + hint)
    if match := _PARSER_ERROR.search(error_text):
        return StatementError(f"the statement is not valid SQL: {match[1]}")
    lines = [line.strip() for line in error_text.splitlines() if line.strip()]
    return StatementError(f"the statement failed: {' '.join(lines)}")


def _column_name(text: str) -> str:
    """Return the name of `table.column`, without quotes."""
    return text.strip().rpartition(".")[2].strip('"')
