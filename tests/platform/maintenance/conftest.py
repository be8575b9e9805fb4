"""The control store of the tests of maintenance."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.platform.control import ControlStore, open_control_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[ControlStore]:
    opened = open_control_store(f"sqlite:///{tmp_path}/control.db")
    yield opened
    opened.close()
