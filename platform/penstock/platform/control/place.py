"""Where the store's tables are in a PostgreSQL database: in a schema of their own.

Dagster may keep its storage in the same database: it has the schema `public` to itself, its list of migrations too.
"""

from typing import Any

from sqlalchemy import Connection, inspect, text

from penstock.platform.control.tables import metadata

SCHEMA = "penstock"
VERSIONS = "alembic_version"


def look_there(connection: Any, _record: object) -> None:
    """Have a new connection look for tables, and make them, in the store's schema alone."""
    before, connection.autocommit = connection.autocommit, True  # a setting goes with its transaction
    with connection.cursor() as cursor:
        cursor.execute(f"SET search_path TO {SCHEMA}")
    connection.autocommit = before


def make_place(connection: Connection) -> None:
    """Make the schema where there is none; tables of a store that was in `public` come along."""
    if inspect(connection).has_schema(SCHEMA):
        return
    connection.execute(text(f"CREATE SCHEMA {SCHEMA}"))
    if _was_in_public(connection):
        for table in (*metadata.tables, VERSIONS):
            if inspect(connection).has_table(table, schema="public"):
                connection.execute(text(f"ALTER TABLE public.{table} SET SCHEMA {SCHEMA}"))


def _was_in_public(connection: Connection) -> bool:
    there = inspect(connection).get_table_names(schema="public")
    return {"streams", "leases", "batches", VERSIONS} <= set(there)
