"""Whole stacks: one that tests share, and one for a single test."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.platform.whole import changing_pipeline
from tests.platform.whole.canary_secrets import write_canaries
from tests.platform.whole.scratch_stack import ScratchStack

from penstock.infra.jars import ensure_jars


@pytest.fixture(scope="session")
def jars(jar_directory: Path) -> Path:
    """The jars of the checkout, downloaded once."""
    ensure_jars(jar_directory)
    return jar_directory


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory, jars: Path) -> Iterator[ScratchStack]:
    """A stack that several tests share.

    It runs most of the time of the tests, beside others, and batches take most of its processor time. So they are
    rarer than by default.
    """
    folder = tmp_path_factory.mktemp("running")
    variables = {**write_canaries(folder / "secrets"), "PENSTOCK_HOST__BATCH_INTERVAL": "500ms"}
    stack = ScratchStack(folder / "home", jars, variables)
    stack.copy_pipelines()
    changing_pipeline.write_pipeline(stack.catalog)
    with stack.stopped_on_exit():
        yield stack


@pytest.fixture
def running(shared: ScratchStack) -> ScratchStack:
    """The shared stack, started if it does not run."""
    if not shared.pids():
        shared.up()
    return shared


@pytest.fixture
def own_stack(tmp_path: Path, jars: Path) -> Iterator[ScratchStack]:
    """A stack for one test, not started, and stopped at the end."""
    stack = ScratchStack(tmp_path / "home", jars)
    with stack.stopped_on_exit():
        yield stack
