"""PostgreSQL users of the services, created by an admin who is no superuser, as on RDS."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.platform.conftest import Postgres, postgres  # noqa: F401  a fixture is used by its name

USERS_SQL = Path(__file__).parents[4] / "infra" / "modules" / "aws" / "control_store" / "users.sql"

pytestmark = pytest.mark.whole  # a PostgreSQL server


class PasswordServer:
    """A server that requires a password of everyone except its superuser."""

    def __init__(self, server: Postgres) -> None:
        self.server = server

    def run_psql(
        self, user: str, database: str, *arguments: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        connection = ["-h", "127.0.0.1", "-p", str(self.server.port), "-U", user, "-d", database, "-At"]
        return subprocess.run(
            [str(self.server.programs / "psql"), *connection, *arguments],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=False,
        )

    def make_users(self, admin_password: str, **passwords: str) -> subprocess.CompletedProcess[str]:
        variables = {f"{user.upper()}_PASSWORD": password for user, password in passwords.items()}
        return self.run_psql(
            "admin", "penstock", "--file", str(USERS_SQL), PGPASSWORD=admin_password, **variables
        )


@pytest.fixture(scope="module")
def server(postgres: Postgres) -> PasswordServer:  # noqa: F811  the fixture that was imported above
    sql_server = PasswordServer(postgres)
    rules = postgres.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host all admin,penstock,dagster 127.0.0.1/32 scram-sha-256\n{before}")
    postgres.run("pg_ctl", "-D", str(postgres.folder / "data"), "reload")
    for statement in (
        "CREATE ROLE admin LOGIN CREATEROLE CREATEDB PASSWORD 'admin1'",
        "CREATE DATABASE penstock OWNER admin",
    ):
        assert sql_server.run_psql("tests", "postgres", "-c", statement).returncode == 0
    return sql_server


def test_each_service_gets_its_own_user_and_database(server: PasswordServer) -> None:
    result = server.make_users("admin1", penstock="pen'1", dagster="dag1")
    assert (result.returncode, result.stderr) == (0, "")
    schema = server.run_psql("penstock", "penstock", "-c", "CREATE SCHEMA penstock", PGPASSWORD="pen'1")
    assert schema.returncode == 0, schema.stderr
    table = server.run_psql("dagster", "dagster", "-c", "CREATE TABLE runs (id int)", PGPASSWORD="dag1")
    assert table.returncode == 0, table.stderr


def test_a_service_cannot_use_the_database_of_another(server: PasswordServer) -> None:
    for user, other, password in (("penstock", "dagster", "pen'1"), ("dagster", "penstock", "dag1")):
        refused = server.run_psql(user, other, "-c", "SELECT 1", PGPASSWORD=password)
        assert "permission denied for database" in refused.stderr


def test_a_second_run_changes_only_the_passwords(server: PasswordServer) -> None:
    assert server.make_users("admin1", penstock="pen2", dagster="dag2").returncode == 0
    assert server.run_psql("penstock", "penstock", "-c", "SELECT 1", PGPASSWORD="pen2").stdout == "1\n"
    assert "authentication failed" in server.run_psql("dagster", "dagster", PGPASSWORD="dag1").stderr


def test_a_missing_password_is_refused_without_changes(server: PasswordServer) -> None:
    result = server.make_users("admin1", penstock="pen3")
    assert result.returncode != 0
    assert server.run_psql("dagster", "dagster", "-c", "SELECT 1", PGPASSWORD="dag2").returncode == 0
