"""The PostgreSQL schema of the control store's tables.

Dagster may use the same database: its tables and its migration table are in the schema `public`.
"""

from typing import Any

from sqlalchemy import Connection, inspect, text

POSTGRES_SCHEMA = "penstock"
VERSION_TABLE = "alembic_version"


def set_search_path(connection: Any, _record: object) -> None:
    """Make a new connection use only the store's schema."""
    previous_autocommit, connection.autocommit = (
        connection.autocommit,
        True,
    )  # a setting ends with its transaction
    with connection.cursor() as cursor:
        cursor.execute(f"SET search_path TO {POSTGRES_SCHEMA}")
    connection.autocommit = previous_autocommit


def ensure_schema(connection: Connection) -> None:
    """Create the schema if it does not exist."""
    if not inspect(connection).has_schema(POSTGRES_SCHEMA):
        connection.execute(text(f"CREATE SCHEMA {POSTGRES_SCHEMA}"))
