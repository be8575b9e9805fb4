"""State whose types do not fit a changed definition is refused."""

from pathlib import Path

import pyarrow as pa
import pytest
from tests.pipelines.engine.batch import stream_bench
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, run_batches

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import PlanChangedError
from penstock.engine.upgrade.state_migration import migrate_state
from penstock.engine.upgrade.state_schema_check import check_state_schema
from penstock.engine.upgrade.stored_plan import accept_plan, read_stored_plan, store_plan


def run_bench(name: str, folder: Path) -> Bench:
    """Run a stream that stores its plan."""
    bench = Bench(PLANS[name], folder)
    store_plan(folder / "stream", bench.plan)
    run_batches(bench)
    return bench


def read_last_outcome(bench: Bench) -> BatchOutcome:
    last = BatchJournal(bench.folder / "stream" / "journal").read_last_outcome()
    assert last is not None
    return last


def check_schema(bench: Bench, last: BatchOutcome) -> None:
    check_state_schema(bench.folder / "stream", bench.plan.name, bench.compile_plan(), last)


@pytest.mark.parametrize("name", PLANS)
def test_unchanged_stages_fit_their_state(name: str, tmp_path: Path) -> None:
    bench = run_bench(name, tmp_path)
    assert any(read_last_outcome(bench).state_files.values())
    check_schema(bench, read_last_outcome(bench))


def test_a_step_that_changes_a_column_type_requires_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Spark knows the output types of a step, so comparing definitions is not enough."""
    bench = run_bench("fixed", tmp_path)
    before = read_stored_plan(tmp_path / "stream")
    monkeypatch.setitem(stream_bench.TYPES, "value", pa.float64())
    message = (
        r"^stream stream: its definition changed, and its state does not fit: "
        r".*stream has \S*total\S* as int64, which must now be double.*penstock stream replay stream"
    )
    with pytest.raises(PlanChangedError, match=message):
        accept_plan(
            tmp_path / "stream", bench.plan, read_last_outcome(bench), lambda last: check_schema(bench, last)
        )
    with pytest.raises(PlanChangedError, match="does not fit"):
        migrate_state(tmp_path / "stream", bench.plan, bench.compile_plan(), (), 2)
    assert read_stored_plan(tmp_path / "stream") == before
    monkeypatch.setitem(stream_bench.TYPES, "value", pa.int64())
    monkeypatch.setitem(stream_bench.TYPES, "key", pa.int64())
    with pytest.raises(PlanChangedError, match="stream has key as string, which must now be int64"):
        check_schema(bench, read_last_outcome(bench))
