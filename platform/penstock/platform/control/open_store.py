"""Opens the control store after migrating its schema."""

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

HEAD_REVISION = "0003"
"""The newest migration; a test compares it with the files, so that opening the store need not import alembic."""

MIGRATION_LOCK_KEY = 0x70656E73
"""Key of the PostgreSQL advisory lock that serializes migrations."""

MIGRATION_TIMEOUT_S = 3600.0
"""How long one statement of a migration, or the migration of another process, may take."""


def open_control_store(
    url: str, secret_reference: str = "", query_timeout_s: float = QUERY_TIMEOUT_S
) -> ControlStore:
    """Open the store at `url` with the current schema. Raises ControlError if it is unavailable or newer.

    `secret_reference` refers to the password of the PostgreSQL user; without it, libpq uses its own defaults. No
    call waits longer than `query_timeout_s` for a statement, except for a migration.
    """
    engine = create_store_engine(url, secret_reference, query_timeout_s)
    try:
        if read_revision(engine) != HEAD_REVISION:
            _migrate_with_long_timeout(url, secret_reference)
    except OperationalError as error:
        engine.dispose()
        shown_url, cause = engine.url.render_as_string(hide_password=True), str(error.orig).splitlines()[0]
        raise ControlError(
            f"cannot open the control store {shown_url} ({cause}); check the server, or the permissions of the file"
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
    """Whether the store exists; opening a SQLite store would create its file."""
    return not url.startswith("sqlite:///") or Path(url.removeprefix("sqlite:///")).exists()


def read_revision(engine: Engine) -> str | None:
    """Return the migration revision of the store; None for an empty store."""
    with engine.connect() as connection:
        if not inspect(connection).has_table(VERSION_TABLE):
            return None
        return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def migrate_schema(engine: Engine, target: str = HEAD_REVISION) -> None:
    """Migrate the schema to `target` in one transaction; a concurrent process waits and then has nothing to do."""
    # Imported here, because alembic takes as long to import as `penstock status` may run.
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
                f"this version does not know the schema of the control store ({error}); upgrade Penstock on this "
                "machine, or use a store of this version"
            ) from None
