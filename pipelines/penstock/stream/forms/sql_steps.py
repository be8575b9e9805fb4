"""Steps as queries: WHERE, a list of columns, a statement over the source, or a table function."""

import re
from pathlib import Path

from penstock.engine.errors import DefinitionError
from penstock.stream.forms.sql_text import quote_name, quote_path, write_table_function
from penstock.stream.forms.steps import StepForm
from penstock.stream.sql_loader.queries import SqlSelect
from penstock.stream.sql_loader.query_documents import is_plain_query, is_stage_query
from penstock.stream.sql_loader.query_parser import QueryParser
from penstock.stream.sql_loader.tokens import SqlFile

_FROM_INPUT = re.compile(r"\bFROM input\b")


def write_step(step: StepForm, source: str) -> str:
    """Return a query with one step over a source."""
    if is_where(step):
        return f"SELECT * FROM {source} WHERE {step.value}"
    if step.keyword == "select":
        items = [_write_column_pair(column) for column in step.value]
        return f"SELECT {', '.join(items)} FROM {source}"
    if step.keyword == "sql" and (statement := _write_statement(step.value, source)):
        return statement
    return f"SELECT * FROM {write_table_function(step.keyword, source, step.value, step.options)}"


def is_where(step: StepForm) -> bool:
    """Whether a step can be a WHERE: a backslash means something else in SQL, and lines are indented."""
    return step.keyword == "filter" and not {"\\", "\n"} & set(step.value)


def _write_column_pair(column: str | dict[str, str]) -> str:
    if isinstance(column, str):
        return quote_path(column)
    ((new, old),) = column.items()
    return f"{quote_path(old)} AS {quote_name(new)}"


def _write_statement(text: str, source: str) -> str | None:
    """Return a SQL step as a query over its source, if the query reads back as the same step."""
    statement, count = _FROM_INPUT.subn(lambda _: f"FROM {source}", text)
    if count != 1 or "\n" in text:
        return None
    file = SqlFile(Path("step.sql"), statement)
    try:
        query = QueryParser(file).parse_query(file.tokenize())
    except DefinitionError:
        return None
    is_step = isinstance(query, SqlSelect) and not is_stage_query(query) and not is_plain_query(query)
    is_same = isinstance(query, SqlSelect) and query.step_text == text and query.join is None
    return statement if is_step and is_same and not file.collector.problems else None
