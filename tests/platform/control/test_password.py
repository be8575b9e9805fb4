"""The password of the control store: read for each connection, and never shown."""

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

SetPassword = Callable[[str], str]


@pytest.fixture
def set_password(postgres: Postgres) -> SetPassword:
    """Create a user with a database; each call sets the password and returns the address."""
    name = f"keyed_{uuid.uuid4().hex}"
    address = postgres.database_with_password(name, name)

    def set_user_password(password: str) -> str:
        postgres.set_password(name, password)
        return address

    return set_user_password


def test_a_password_is_read_from_its_secret_reference(
    set_password: SetPassword, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = set_password("canary-one")
    monkeypatch.setenv("CONTROL_STORE", '{"username": "penstock", "password": "canary-one"}')
    store = open_control_store(address, "env:CONTROL_STORE")
    assert store.read_hosts() == []
    assert "canary-one" not in repr(store.engine.url)
    store.close()


def test_a_changed_password_file_is_read_by_the_next_connection(
    set_password: SetPassword, tmp_path: Path
) -> None:
    password_file = tmp_path / "password"
    password_file.write_text("one\n")
    store = open_control_store(set_password("one"), str(password_file))
    set_password("two")
    password_file.write_text("two\n")
    store.engine.dispose()
    assert store.read_hosts() == []
    store.close()


def test_a_wrong_password_is_reported_without_showing_it(set_password: SetPassword, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("canary-wrong")
    with pytest.raises(ControlError, match="cannot open the control store") as caught:
        open_control_store(set_password("right"), str(tmp_path / "password"))
    assert "canary" not in str(caught.value)


def test_a_missing_secret_is_named(set_password: SetPassword) -> None:
    with pytest.raises(SecretError, match=r"The control store's password is not in a variable NO_SUCH"):
        open_control_store(set_password("one"), "env:NO_SUCH")
