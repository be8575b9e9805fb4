"""Connections to the control store, on SQLite or PostgreSQL."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.sql.schema import Table

from penstock.core.secret import read_secret
from penstock.platform.control.postgres_schema import set_search_path
from penstock.platform.errors import ControlError

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

SQLITE_BUSY_TIMEOUT_MS = 10_000
QUERY_TIMEOUT_S = 60.0
"""How long a command waits for the result of a PostgreSQL query."""

POSTGRES_KEEPALIVE_OPTIONS = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""Detect a lost PostgreSQL server before a lease of 15 s expires. Options in the URL take precedence."""

LOCK_IMMEDIATELY_OPTION = "penstock_begin_immediate"
"""Execution option: a SQLite transaction takes the write lock when it starts."""


def create_store_engine(
    url: str, secret_reference: str = "", query_timeout_s: float = QUERY_TIMEOUT_S
) -> Engine:
    """Create the engine for the store at `url`. Raises ControlError for an unsupported URL.

    The password is read from its secret reference for each new connection, so a changed file takes effect. No
    statement waits for PostgreSQL longer than `query_timeout_s`; SQLite has its own limit.
    """
    parsed_url = _parse_url(url)
    if parsed_url.get_backend_name() == "postgresql":
        engine = create_engine(parsed_url, pool_pre_ping=True, connect_args=_keepalive_options(parsed_url))
        if secret_reference:
            event.listen(engine, "do_connect", partial(_set_password, secret_reference))
        event.listen(engine, "do_connect", partial(_open_connection, query_timeout_s))
        event.listen(engine, "connect", set_search_path, insert=True)
        return engine
    _create_database_folder(parsed_url)
    engine = create_engine(parsed_url)
    event.listen(engine, "connect", _configure_sqlite)
    event.listen(engine, "begin", _begin_sqlite_transaction)
    return engine


def build_insert(connection: Connection, table: Table) -> "sqlite.Insert | postgresql.Insert":
    """Return an insert that supports ON CONFLICT, in the dialect of the connection."""
    if connection.dialect.name == "postgresql":
        # Imported here, because `penstock status` must start fast and rarely needs it.
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    return sqlite.insert(table)


def _parse_url(url: str) -> URL:
    try:
        parsed_url = make_url(url)
    except ArgumentError:
        raise ControlError(
            f"control_url is {url!r}; use sqlite:///FILE or postgresql://USER@HOST/DATABASE"
        ) from None
    if parsed_url.get_backend_name() not in {"sqlite", "postgresql"}:
        shown_url = parsed_url.render_as_string(hide_password=True)
        raise ControlError(
            f"control_url is {shown_url!r}; use sqlite:///FILE or postgresql://USER@HOST/DATABASE"
        )
    return (
        parsed_url.set(drivername="postgresql+psycopg")
        if parsed_url.drivername == "postgresql"
        else parsed_url
    )


def _keepalive_options(parsed_url: URL) -> dict[str, int]:
    return {name: value for name, value in POSTGRES_KEEPALIVE_OPTIONS.items() if name not in parsed_url.query}


def _set_password(
    secret_reference: str,
    _dialect: object,
    _record: object,
    _arguments: object,
    connect_arguments: dict[str, Any],
) -> None:
    password = read_secret(secret_reference, "The control store's password")
    connect_arguments["password"] = password.reveal()


def _open_connection(
    query_timeout_s: float,
    _dialect: object,
    _record: object,
    positional_arguments: Any,
    connect_arguments: dict[str, Any],
) -> object:
    # Imported here, like the driver.
    from penstock.platform.control.postgres_timeout import connect_with_timeout

    return connect_with_timeout(query_timeout_s, *positional_arguments, **connect_arguments)


def _create_database_folder(parsed_url: URL) -> None:
    if parsed_url.database:
        Path(parsed_url.database).parent.mkdir(parents=True, exist_ok=True)


def _configure_sqlite(connection: Any, _record: object) -> None:
    """Disable the driver's own transactions, and let readers continue while one connection writes (WAL).

    FULL syncs each transaction: an epoch of a lease that a power cut took back would be given twice.
    """
    connection.isolation_level = None
    for pragma in (
        f"busy_timeout={SQLITE_BUSY_TIMEOUT_MS}",
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
    ):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite_transaction(connection: Connection) -> None:
    lock_immediately = connection.get_execution_options().get(LOCK_IMMEDIATELY_OPTION)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if lock_immediately else "BEGIN")
