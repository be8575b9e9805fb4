"""Opening the control store, its schema brought up to date first."""

from pathlib import Path

from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import OperationalError

from penstock.platform.control.database_engine import (
    LOCK_IMMEDIATELY_OPTION,
    QUERY_TIMEOUT_S,
    create_store_engine,
)
from penstock.platform.control.postgres_schema import VERSION_TABLE, ensure_schema
from penstock.platform.control.store import ControlStore
from penstock.platform.errors import ControlError

HEAD_REVISION = "0008"
"""The newest migration; a test compares it with the files, so that opening need not load alembic."""

MIGRATION_LOCK_KEY = 0x70656E73
"""Names the advisory lock on PostgreSQL under which one process at a time migrates."""

MIGRATION_TIMEOUT_S = 3600.0
"""How long one statement of a migration may take, or another process that migrates."""


def open_control_store(
    url: str, secret_reference: str = "", query_timeout_s: float = QUERY_TIMEOUT_S
) -> ControlStore:
    """The store at `url`, with today's schema. ControlError where it cannot be reached or is newer.

    `secret_reference` is the place of a PostgreSQL user's password; without it libpq looks where it always does.
    No call waits longer than `query_timeout_s` for a statement's answer, but for a migration: that takes what it
    takes.
    """
    engine = create_store_engine(url, secret_reference, query_timeout_s)
    try:
        if read_revision(engine) != HEAD_REVISION:
            _migrate_with_long_timeout(url, secret_reference)
    except OperationalError as error:
        engine.dispose()
        shown_url, cause = engine.url.render_as_string(hide_password=True), str(error.orig).splitlines()[0]
        raise ControlError(
            f"the control store {shown_url} cannot be opened ({cause}): is the server up, the disk writable?"
        ) from None
    except ControlError:
        engine.dispose()
        raise
    return ControlStore(engine)


def _migrate_with_long_timeout(url: str, secret_reference: str) -> None:
    engine = create_store_engine(url, secret_reference, MIGRATION_TIMEOUT_S)
    try:
        migrate_schema(engine)
    finally:
        engine.dispose()


def control_store_exists(url: str) -> bool:
    """Whether there is a store to look into; opening one that is a file would make it."""
    return not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).exists()


def read_revision(engine: Engine) -> str | None:
    """Which migration the store is at; None for an empty one."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(VERSION_TABLE):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def migrate_schema(engine: Engine, target: str = HEAD_REVISION) -> None:
    """Bring the schema to `target`, in one transaction; a second process waits, and finds it done."""
    # Alembic takes as long to import as a whole `penstock status` may: only who migrates pays for it.
    from alembic import command
    from alembic.config import Config
    from alembic.util.exc import CommandError

    config = Config()
    config.set_main_option("script_location", "penstock.platform.control:migrations")
    with (
        engine.connect().execution_options(**{LOCK_IMMEDIATELY_OPTION: True}) as connection,
        connection.begin(),
    ):
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": MIGRATION_LOCK_KEY})
            ensure_schema(connection)
        config.attributes["connection"] = connection
        try:
            command.upgrade(config, target)
        except CommandError as error:
            raise ControlError(
                f"the control store's schema is not known to this version ({error}): "
                "upgrade penstock here, or use the store that belongs to it"
            ) from None
