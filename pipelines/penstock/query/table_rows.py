"""Reads columns and rows of one version of a table. Both are pushed down: other columns and files are not read."""

from collections.abc import Sequence

import pyarrow as pa

from penstock.core.names import explain_unknown_name
from penstock.query.errors import StatementError
from penstock.query.sql_query import run_snapshot_query
from penstock.query.table_snapshots import TableSnapshot


def read_table_rows(
    snapshot: TableSnapshot, columns: Sequence[str] = (), where: str = "", order_by: Sequence[str] = ()
) -> pa.Table:
    """Return rows that meet a condition in SQL; all columns and all rows by default.

    Raises StatementError for an unknown column or an invalid condition.
    """
    names = list_columns(snapshot)
    for column in columns:
        if column not in names:
            raise StatementError(explain_unknown_name("column", column, names))
    selected = ", ".join(map(quote_name, columns)) or "*"
    condition = f" WHERE ({where})" if where else ""
    order = f" ORDER BY {', '.join(order_by)}" if order_by else ""
    # The caller's own condition, on one table that is only read.
    statement = f"SELECT {selected} FROM {quote_name(snapshot.name)}{condition}{order}"  # noqa: S608
    return run_snapshot_query(statement, [snapshot]).read_all()


def list_columns(snapshot: TableSnapshot) -> list[str]:
    """Return the names of the columns."""
    return [field.name for field in snapshot.table.schema().fields]


def quote_name(name: str) -> str:
    """Return a name for SQL, as it is written."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'
