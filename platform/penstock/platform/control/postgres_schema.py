"""Where the store's tables are in a PostgreSQL database: in a schema of their own.

Dagster may keep its storage in the same database: it has the schema `public` to itself, its list of migrations too.
"""

from typing import Any

from sqlalchemy import Connection, inspect, text

from penstock.platform.control.tables import metadata

POSTGRES_SCHEMA = "penstock"
VERSION_TABLE = "alembic_version"


def set_search_path(connection: Any, _record: object) -> None:
    """Have a new connection look for tables, and make them, in the store's schema alone."""
    previous_autocommit, connection.autocommit = (
        connection.autocommit,
        True,
    )  # a setting goes with its transaction
    with connection.cursor() as cursor:
        cursor.execute(f"SET search_path TO {POSTGRES_SCHEMA}")
    connection.autocommit = previous_autocommit


def ensure_schema(connection: Connection) -> None:
    """Make the schema where there is none; tables of a store that was in `public` come along."""
    if inspect(connection).has_schema(POSTGRES_SCHEMA):
        return
    connection.execute(text(f"CREATE SCHEMA {POSTGRES_SCHEMA}"))
    if _is_in_public_schema(connection):
        for table in (*metadata.tables, VERSION_TABLE):
            if inspect(connection).has_table(table, schema="public"):
                connection.execute(text(f"ALTER TABLE public.{table} SET SCHEMA {POSTGRES_SCHEMA}"))


def _is_in_public_schema(connection: Connection) -> bool:
    table_names = inspect(connection).get_table_names(schema="public")
    return {"streams", "leases", "batches", VERSION_TABLE} <= set(table_names)
