"""Connections to the control store, the same to use over SQLite and PostgreSQL."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects import sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError
from sqlalchemy.sql.schema import Table

from penstock.infra.secret import read_secret
from penstock.platform.control.place import look_there
from penstock.platform.errors import ControlError

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

WAIT_MS = 10_000
PATIENCE_SECONDS = 60.0
"""How long a command waits for an answer of a PostgreSQL that took its question."""

NOT_FOR_EVER = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}
"""How soon a PostgreSQL that went away without a word is known to be: before a lease of 15 s runs out. Where an
address says otherwise, that holds."""

LOCK_AT_ONCE = "penstock_lock_at_once"
"""Execution option: a SQLite transaction takes the write lock when it begins."""


def make_engine(url: str, secret: str = "", patience_s: float = PATIENCE_SECONDS) -> Engine:
    """An engine for the store at `url`. ControlError where the address is of no kind the store knows.

    A password that has a place is read there for each new connection: a file that was changed is taken up. No
    statement waits for PostgreSQL longer than `patience_s`; SQLite has a limit of its own.
    """
    address = _address(url)
    if address.get_backend_name() == "postgresql":
        engine = create_engine(address, pool_pre_ping=True, connect_args=_not_for_ever(address))
        if secret:
            event.listen(engine, "do_connect", partial(_log_in, secret))
        event.listen(engine, "do_connect", partial(_connect, patience_s))
        event.listen(engine, "connect", look_there, insert=True)
        return engine
    _make_folder(address)
    engine = create_engine(address)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def insert_into(connection: Connection, table: Table) -> "sqlite.Insert | postgresql.Insert":
    """An insert that knows ON CONFLICT, in the connection's dialect."""
    if connection.dialect.name == "postgresql":
        # Loaded when needed: `penstock status` is to answer at once, and rarely needs it.
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    return sqlite.insert(table)


def _address(url: str) -> URL:
    try:
        address = make_url(url)
    except ArgumentError:
        raise ControlError(f"control_url is {url!r}: write sqlite:///FILE or postgresql://…") from None
    if address.get_backend_name() not in {"sqlite", "postgresql"}:
        shown = address.render_as_string(hide_password=True)
        raise ControlError(f"control_url is {shown!r}: write sqlite:///FILE or postgresql://…")
    return address.set(drivername="postgresql+psycopg") if address.drivername == "postgresql" else address


def _not_for_ever(address: URL) -> dict[str, int]:
    return {name: value for name, value in NOT_FOR_EVER.items() if name not in address.query}


def _log_in(place: str, _dialect: object, _record: object, _arguments: object, told: dict[str, Any]) -> None:
    told["password"] = read_secret(place, "The control store's password")


def _connect(
    patience_s: float, _dialect: object, _record: object, arguments: Any, told: dict[str, Any]
) -> object:
    # Loaded when needed, as the driver is.
    from penstock.platform.control.patience import connect

    return connect(patience_s, *arguments, **told)


def _make_folder(address: URL) -> None:
    if address.database:
        Path(address.database).parent.mkdir(parents=True, exist_ok=True)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    """Take transactions into our own hands, and let readers go on while one writes."""
    connection.isolation_level = None
    for pragma in (f"busy_timeout={WAIT_MS}", "journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    at_once = connection.get_execution_options().get(LOCK_AT_ONCE)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if at_once else "BEGIN")
