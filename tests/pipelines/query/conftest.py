"""The tables of a stream that ran over a few records."""

from pathlib import Path

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, run_batches


@pytest.fixture(scope="module")
def stream(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A stream that retracts, after six batches; its tables are called `stream`, its topic `records`."""
    bench = Bench(PLAN, tmp_path_factory.mktemp("stream"))
    run_batches(bench)
    return bench


@pytest.fixture
def own_stream(tmp_path: Path) -> Bench:
    """The same, for a test that damages it."""
    bench = Bench(PLAN, tmp_path)
    run_batches(bench)
    return bench
