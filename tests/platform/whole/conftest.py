"""Whole stacks: one that several tests look at, and one of a test's own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.platform.whole import changing
from tests.platform.whole.stack import ScratchStack

from penstock.infra.jars import ensure_jars


@pytest.fixture(scope="session")
def jars(jar_directory: Path) -> Path:
    """The checkout's jars, fetched once for every stack."""
    ensure_jars(jar_directory)
    return jar_directory


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, jars: Path) -> Iterator[ScratchStack]:
    """A stack that several tests share, ended with the last of them."""
    stack = ScratchStack(tmp_path_factory.mktemp("running") / "home", jars)
    stack.with_pipelines_of_its_own()
    changing.write(stack.catalog)
    with stack.ended_at_last():
        yield stack


@pytest.fixture
def running(shared: ScratchStack) -> ScratchStack:
    """A stack that runs while its tests look at it; whoever finds it down starts it."""
    if not shared.pids():
        shared.up()
    return shared


@pytest.fixture
def own(tmp_path: Path, jars: Path) -> Iterator[ScratchStack]:
    """A stack of one test's own, not started; what it starts is ended, whatever becomes of the test."""
    stack = ScratchStack(tmp_path / "home", jars)
    with stack.ended_at_last():
        yield stack
