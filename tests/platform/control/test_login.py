"""How the store's password gets from its place to PostgreSQL: read for each connection, shown nowhere."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.platform.conftest import Postgres

from penstock.core.errors import SecretError
from penstock.platform.control import open_control_store
from penstock.platform.errors import ControlError

pytestmark = pytest.mark.whole  # a PostgreSQL server

User = Callable[[str], str]


@pytest.fixture
def user(postgres: Postgres) -> User:
    """Have a user log in by a password, his own database's owner; the address of it. Told again, it changes."""
    name = f"keyed_{uuid.uuid4().hex}"
    address = postgres.database(name)
    where = ("-h", "127.0.0.1", "-p", str(postgres.port), "-U", "tests", "-d", "postgres")
    postgres.run("psql", *where, "-c", f"CREATE ROLE {name} LOGIN")
    postgres.run("psql", *where, "-c", f"ALTER DATABASE {name} OWNER TO {name}")
    rules = postgres.folder / "data" / "pg_hba.conf"
    rules.write_text(f"host all {name} 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    postgres.run("pg_ctl", "-D", str(postgres.folder / "data"), "reload")

    def has(password: str) -> str:
        postgres.run("psql", *where, "-c", f"ALTER ROLE {name} PASSWORD '{password}'")
        return address.replace("tests@", f"{name}@")

    return has


def test_a_password_is_read_from_its_place(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    address = user("canary-one")
    monkeypatch.setenv("CONTROL_STORE", '{"username": "penstock", "password": "canary-one"}')
    store = open_control_store(address, "env:CONTROL_STORE")
    assert store.read_hosts() == []
    assert "canary-one" not in repr(store.engine.url)
    store.close()


def test_a_file_that_was_changed_is_taken_up_by_the_next_connection(user: User, tmp_path: Path) -> None:
    place = tmp_path / "password"
    place.write_text("one\n")
    store = open_control_store(user("one"), str(place))
    user("two")
    place.write_text("two\n")
    store.engine.dispose()
    assert store.read_hosts() == []
    store.close()


def test_a_wrong_password_is_said_without_it(user: User, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("canary-wrong")
    with pytest.raises(ControlError, match="cannot open the control store") as caught:
        open_control_store(user("right"), str(tmp_path / "password"))
    assert "canary" not in str(caught.value)


def test_a_place_that_holds_nothing_is_named(user: User) -> None:
    with pytest.raises(SecretError, match=r"The control store's password is not in a variable NO_SUCH"):
        open_control_store(user("one"), "env:NO_SUCH")
