"""Each writer epoch has its own Spark checkpoint, taken from the epoch before."""

from pathlib import Path

import pytest

from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import WriterFencedError
from penstock.engine.spark.epoch_checkpoint import claim_checkpoint


def make_fence(epoch: int, *, holds: bool = True) -> WriteFence:
    return WriteFence("s", epoch, lambda: holds)


def plan_batch(checkpoint: Path, batch: int) -> None:
    """Write the offset file of a batch, as Spark does."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(batch)).touch()


def list_planned_batches(folder: Path) -> dict[str, list[str]]:
    """List the planned batches of each checkpoint."""
    return {
        path.name: sorted(each.name for each in path.glob("offsets/*"))
        for path in sorted(folder.glob("checkpoint*"))
    }


def test_a_new_stream_has_no_checkpoint(tmp_path: Path) -> None:
    assert claim_checkpoint(tmp_path, make_fence(1)) == tmp_path / "checkpoint.1"
    assert list_planned_batches(tmp_path) == {}


def test_each_start_takes_the_previous_checkpoint(tmp_path: Path) -> None:
    plan_batch(claim_checkpoint(tmp_path, make_fence(1)), 0)
    plan_batch(claim_checkpoint(tmp_path, make_fence(9)), 1)
    assert claim_checkpoint(tmp_path, make_fence(10)) == tmp_path / "checkpoint.10"
    assert list_planned_batches(tmp_path) == {"checkpoint.10": ["0", "1"]}


def test_a_checkpoint_of_an_earlier_version_is_taken(tmp_path: Path) -> None:
    plan_batch(tmp_path / "checkpoint", 7)
    claim_checkpoint(tmp_path, make_fence(3))
    assert list_planned_batches(tmp_path) == {"checkpoint.3": ["7"]}


def test_batches_that_a_fenced_host_plans_are_ignored(tmp_path: Path) -> None:
    fenced_checkpoint = claim_checkpoint(tmp_path, make_fence(1))
    plan_batch(fenced_checkpoint, 0)
    successor = claim_checkpoint(tmp_path, make_fence(2))
    plan_batch(fenced_checkpoint, 1)
    assert list_planned_batches(tmp_path) == {"checkpoint.1": ["1"], "checkpoint.2": ["0"]}
    plan_batch(successor, 1)
    claim_checkpoint(tmp_path, make_fence(3))
    assert list_planned_batches(tmp_path) == {"checkpoint.3": ["0", "1"]}


def test_a_fenced_host_does_not_take_the_checkpoint(tmp_path: Path) -> None:
    plan_batch(claim_checkpoint(tmp_path, make_fence(1)), 0)
    claim_checkpoint(tmp_path, make_fence(3))
    with pytest.raises(WriterFencedError):
        claim_checkpoint(tmp_path, make_fence(2, holds=False))
    assert list_planned_batches(tmp_path) == {"checkpoint.3": ["0"]}


def test_a_new_control_store_counts_epochs_from_one(tmp_path: Path) -> None:
    plan_batch(claim_checkpoint(tmp_path, make_fence(40)), 0)
    plan_batch(tmp_path / "checkpoint.1", 5)
    assert claim_checkpoint(tmp_path, make_fence(1)) == tmp_path / "checkpoint.1"
    assert list_planned_batches(tmp_path) == {"checkpoint.1": ["0"]}


def test_files_with_similar_names_are_kept(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.bak").touch()
    claim_checkpoint(tmp_path, make_fence(1))
    assert list_planned_batches(tmp_path) == {"checkpoint.bak": []}
