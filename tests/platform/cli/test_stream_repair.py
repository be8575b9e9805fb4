"""`penstock stream repair` shows what does not fit together, asks, repairs and records it."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, make_batches, run_batches

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.upgrade.stored_plan import store_plan
from penstock.platform.services.operator_actions import read_actions


@pytest.fixture
def damaged_home(home: Path, tmp_path: Path) -> Path:
    """A home with a stream of four batches, whose journal lost the last one. Spark's checkpoint is there."""
    bench = Bench(PLAN, tmp_path / "lived")
    run_batches(bench, batches=make_batches()[:4])
    folder = home / "streams" / "stream"
    shutil.copytree(bench.folder / "warehouse", home / "warehouse")
    shutil.copytree(bench.folder / "stream", folder)
    store_plan(folder, PLAN)
    for spark_batch in (0, 1):
        offsets = folder / "checkpoint.1" / "offsets" / str(spark_batch)
        offsets.parent.mkdir(parents=True, exist_ok=True)
        offsets.write_text('v1\n{}\n{"records":{"0":3}}')
    for kind in ("intent", "outcome"):
        (folder / "journal" / f"000000000003.{kind}.json").unlink()
    return home


def test_a_dry_run_changes_nothing(run: Callable, damaged_home: Path) -> None:
    files = sorted(damaged_home.rglob("*"))
    result = run("stream", "repair", "stream", "--dry-run")
    assert result.code == 0
    assert "latest/stream has batch 3, after the last whole batch 2" in result.out
    assert "a repair goes back to batch 2:" in result.out
    assert "records/0: read again from offset 3" in result.out
    assert sorted(damaged_home.rglob("*")) == files


def test_a_repair_is_carried_out_and_recorded(run: Callable, damaged_home: Path) -> None:
    result = run("stream", "repair", "stream", "--yes")
    assert (result.code, result.err) == (0, "")
    assert "repaired with batch 4. Start it: `penstock stream start stream`" in result.out
    last_outcome = BatchJournal(damaged_home / "streams" / "stream" / "journal").read_last_outcome()
    assert last_outcome is not None
    assert (last_outcome.batch_id, last_outcome.kind) == (4, "repair")
    (action,) = read_actions(damaged_home)
    assert (action.action, action.target, action.details["back_to_batch"]) == ("stream repair", "stream", 2)
    assert json.loads(run("stream", "repair", "stream", "--json").out)["problems"] == []


def test_without_a_terminal_a_repair_needs_a_yes(
    run: Callable, damaged_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    result = run("stream", "repair", "stream")
    assert (result.code, "Repeat the command with --yes" in result.err) == (2, True)
    assert list(read_actions(damaged_home)) == []
