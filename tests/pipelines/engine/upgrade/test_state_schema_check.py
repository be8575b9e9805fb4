"""A state that has other types than a changed definition goes on with is refused before anything is done."""

from pathlib import Path

import pyarrow as pa
import pytest
from tests.pipelines.engine.batch import stream_bench
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLANS, Fuse, run

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.errors import PlanChangedError
from penstock.engine.upgrade.state_migration import migrate_state
from penstock.engine.upgrade.state_schema_check import check_state_schema
from penstock.engine.upgrade.stored_plan import accept_plan, read_stored_plan, store_plan


def bench_of(name: str, folder: Path) -> Bench:
    """A stream that has a state, and its definition beside it."""
    bench = Bench(PLANS[name], folder)
    store_plan(folder / "stream", bench.plan)
    run(bench, Fuse(-1))
    return bench


def last_of(bench: Bench) -> BatchOutcome:
    last = BatchJournal(bench.folder / "stream" / "journal").read_last_outcome()
    assert last is not None
    return last


def fits(bench: Bench, last: BatchOutcome) -> None:
    check_state_schema(bench.folder / "stream", bench.plan.name, bench.ready(), last)


@pytest.mark.parametrize("name", PLANS)
def test_a_state_has_the_types_of_the_stages_that_wrote_it(name: str, tmp_path: Path) -> None:
    bench = bench_of(name, tmp_path)
    assert any(last_of(bench).state_files.values())
    fits(bench, last_of(bench))


def test_a_step_that_changes_the_type_of_a_column_requires_a_replay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The definitions alone do not tell: Spark knows what comes out of a step."""
    bench = bench_of("fixed", tmp_path)
    before = read_stored_plan(tmp_path / "stream")
    monkeypatch.setitem(stream_bench.TYPES, "value", pa.float64())
    wanted = (
        r"^stream stream: its definition changed, and its state does not fit: "
        r".*stream has \S*total\S* as int64, which must now be double.*penstock stream replay stream"
    )
    with pytest.raises(PlanChangedError, match=wanted):
        accept_plan(tmp_path / "stream", bench.plan, last_of(bench), lambda last: fits(bench, last))
    with pytest.raises(PlanChangedError, match="does not fit"):
        migrate_state(tmp_path / "stream", bench.plan, bench.ready(), (), 2)
    assert read_stored_plan(tmp_path / "stream") == before
    monkeypatch.setitem(stream_bench.TYPES, "value", pa.int64())
    monkeypatch.setitem(stream_bench.TYPES, "key", pa.int64())
    with pytest.raises(PlanChangedError, match="stream has key as string, which must now be int64"):
        fits(bench, last_of(bench))
