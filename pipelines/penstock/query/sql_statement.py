"""Checks that a statement only reads.

The engine reads tables that it was given by name. It has no functions that open files, so a query cannot leave the
warehouse. Other statements could: `COPY` writes files, and `CREATE EXTERNAL TABLE` reads them.
"""

import re

from penstock.query.errors import StatementError

_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_EXPLAIN = re.compile(r"explain\s+(?:(?:analyze|verbose|format\s+\w+)\s+)*", re.IGNORECASE)
_FIRST_WORD = re.compile(r"[\s(]*(\w+)")
QUERY_WORDS = ("select", "with", "values", "describe")


def require_query(statement: str) -> str:
    """Return a statement without its final semicolon. Raises StatementError unless it is one query."""
    text = statement.strip().rstrip(";").strip()
    without_comments = _COMMENT.sub(" ", text).strip()
    match = _FIRST_WORD.match(_EXPLAIN.sub("", without_comments, count=1))
    if match is None:
        raise StatementError(
            "the statement is empty. Write for example: SELECT * FROM sensor_minute LIMIT 10"
        )
    if match[1].lower() not in QUERY_WORDS:
        raise StatementError(
            f"{match[1]!r} is not the start of a query. Tables are only read: write SELECT, WITH, VALUES, DESCRIBE "
            "or EXPLAIN"
        )
    return text
