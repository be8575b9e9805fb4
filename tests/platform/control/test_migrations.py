"""Migrations of the schema from an empty store and from every revision."""

import json
import socket
import subprocess
import sys
import uuid
from contextlib import closing
from dataclasses import replace

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import column, create_engine, insert, inspect, table
from tests.platform.conftest import Postgres

from penstock.engine.host.control import BatchRecord
from penstock.platform.control.database_engine import create_store_engine
from penstock.platform.control.open_store import (
    HEAD_REVISION,
    migrate_schema,
    open_control_store,
    read_revision,
)
from penstock.platform.control.row_mapping import to_batch_row
from penstock.platform.control.tables import metadata
from penstock.platform.errors import ControlError


def list_revisions() -> list[str]:
    """List the revisions from the first to the newest."""
    config = Config()
    config.set_main_option("script_location", "penstock.platform.control:migrations")
    scripts = ScriptDirectory.from_config(config).walk_revisions()
    return [script.revision for script in scripts][::-1]


def find_schema_differences(url: str) -> list[object]:
    engine = create_store_engine(url)
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()
    return list(differences)


def test_the_newest_revision_is_the_head() -> None:
    assert list_revisions()[-1] == HEAD_REVISION


def test_an_empty_store_is_migrated(url: str) -> None:
    open_control_store(url).close()
    assert find_schema_differences(url) == []


@pytest.mark.parametrize("start", list_revisions())
def test_every_revision_is_migrated(url: str, start: str) -> None:
    engine = create_store_engine(url)
    migrate_schema(engine, start)
    assert read_revision(engine) == start
    engine.dispose()
    open_control_store(url).close()
    assert find_schema_differences(url) == []


def test_a_batch_of_0_1_0_has_its_batch_time_as_the_time_of_its_commit(url: str) -> None:
    engine = create_store_engine(url)
    migrate_schema(engine, "0001")
    record = BatchRecord("s", 0, 1, "data", 5_000, None, ())
    row = {name: value for name, value in to_batch_row(record).items() if name != "committed_at_ms"}
    with engine.begin() as connection:
        connection.execute(insert(table("batches", *map(column, row))).values(row | _encode_json(row)))
    engine.dispose()
    with closing(open_control_store(url)) as store:
        last_batch = store.read_last_batch("s")
    assert last_batch == replace(record, committed_at_ms=5_000)


def _encode_json(row: dict[str, object]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in row.items() if isinstance(value, dict | list)}


def test_a_database_may_have_foreign_tables_and_migrations(postgres: Postgres) -> None:
    url = postgres.database(f"shared_{uuid.uuid4().hex}")
    other = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with other.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num varchar(32))")
        connection.exec_driver_sql("INSERT INTO alembic_version VALUES ('of dagster')")
        connection.exec_driver_sql("CREATE TABLE batches (theirs int)")
    open_control_store(url).close()
    assert find_schema_differences(url) == []
    with other.begin() as connection:
        assert inspect(connection).get_table_names(schema="public") == ["alembic_version", "batches"]
        assert connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar() == "of dagster"
    other.dispose()


def test_concurrent_processes_migrate_an_empty_store_once(url: str) -> None:
    code = (
        "import sys; from penstock.platform.control import open_control_store; "
        "open_control_store(sys.argv[1]).close()"
    )
    openers = [subprocess.Popen([sys.executable, "-c", code, url]) for _ in range(3)]
    assert [opener.wait(60) for opener in openers] == [0, 0, 0]
    assert find_schema_differences(url) == []


def test_a_store_of_a_newer_version_is_refused(url: str) -> None:
    open_control_store(url).close()
    engine = create_store_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    engine.dispose()
    with pytest.raises(ControlError, match=r"does not know the schema .*9999.*upgrade Penstock"):
        open_control_store(url)


def test_an_unreachable_server_is_named_without_its_password() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"postgresql://me:secret@127.0.0.1:{free.getsockname()[1]}/db"
        with pytest.raises(ControlError, match=r"me:\*\*\*@127.0.0.1.*check the server") as caught:
            open_control_store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["nonsense", "mysql://me:secret@here/db"])
def test_an_unsupported_address_is_refused(url: str) -> None:
    with pytest.raises(ControlError, match="use sqlite:///FILE or postgresql://"):
        open_control_store(url)
