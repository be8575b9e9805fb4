"""The services' own users of PostgreSQL, made by a keeper who is no superuser, as RDS's is none."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.platform.conftest import Postgres, postgres  # noqa: F401  a fixture is used by its name

USERS = Path(__file__).parents[4] / "infra" / "modules" / "aws" / "control_store" / "users.sql"

pytestmark = pytest.mark.whole  # a PostgreSQL server


class Server:
    """A server that asks everybody but its superuser for a password."""

    def __init__(self, server: Postgres) -> None:
        self.server = server

    def asked(self, user: str, database: str, *words: str, **told: str) -> subprocess.CompletedProcess[str]:
        where = ["-h", "127.0.0.1", "-p", str(self.server.port), "-U", user, "-d", database, "-At"]
        return subprocess.run(
            [str(self.server.programs / "psql"), *where, *words],
            env={**os.environ, **told},
            capture_output=True,
            text=True,
            check=False,
        )

    def make_users(self, keeper: str, **passwords: str) -> subprocess.CompletedProcess[str]:
        told = {f"{user.upper()}_PASSWORD": password for user, password in passwords.items()}
        return self.asked("keeper", "penstock", "--file", str(USERS), PGPASSWORD=keeper, **told)


@pytest.fixture(scope="module")
def server(postgres: Postgres) -> Server:  # noqa: F811  the fixture that was imported above
    made = Server(postgres)
    rules = postgres.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    rules.write_text(f"host all keeper,penstock,dagster 127.0.0.1/32 scram-sha-256\n{before}")
    postgres.run("pg_ctl", "-D", str(postgres.folder / "data"), "reload")
    for order in (
        "CREATE ROLE keeper LOGIN CREATEROLE CREATEDB PASSWORD 'kept'",
        "CREATE DATABASE penstock OWNER keeper",
    ):
        assert made.asked("tests", "postgres", "-c", order).returncode == 0
    return made


def test_each_service_gets_a_user_and_a_database_of_its_own(server: Server) -> None:
    done = server.make_users("kept", penstock="pen'1", dagster="dag1")
    assert (done.returncode, done.stderr) == (0, "")
    made = server.asked("penstock", "penstock", "-c", "CREATE SCHEMA penstock", PGPASSWORD="pen'1")
    assert made.returncode == 0, made.stderr
    table = server.asked("dagster", "dagster", "-c", "CREATE TABLE runs (id int)", PGPASSWORD="dag1")
    assert table.returncode == 0, table.stderr


def test_neither_gets_into_the_others_database(server: Server) -> None:
    for user, other, password in (("penstock", "dagster", "pen'1"), ("dagster", "penstock", "dag1")):
        refused = server.asked(user, other, "-c", "SELECT 1", PGPASSWORD=password)
        assert "permission denied for database" in refused.stderr


def test_run_again_it_changes_the_passwords_and_nothing_else(server: Server) -> None:
    assert server.make_users("kept", penstock="pen2", dagster="dag2").returncode == 0
    assert server.asked("penstock", "penstock", "-c", "SELECT 1", PGPASSWORD="pen2").stdout == "1\n"
    assert "authentication failed" in server.asked("dagster", "dagster", PGPASSWORD="dag1").stderr


def test_without_a_password_nobody_is_made_to_log_in_by_an_empty_one(server: Server) -> None:
    done = server.make_users("kept", penstock="pen3")
    assert done.returncode != 0
    assert server.asked("dagster", "dagster", "-c", "SELECT 1", PGPASSWORD="dag2").returncode == 0
