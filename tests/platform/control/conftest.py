"""A control store on SQLite and on PostgreSQL."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.platform.control import ControlStore, open_control_store


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/folder/control.db"
    address: str = request.getfixturevalue("postgres").database(f"control_{uuid.uuid4().hex}")
    return address


@pytest.fixture
def store(url: str) -> Iterator[ControlStore]:
    """A store with its tables."""
    opened = open_control_store(url)
    yield opened
    opened.close()
