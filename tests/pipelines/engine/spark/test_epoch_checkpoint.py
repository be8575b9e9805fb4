"""Of each writer Spark's checkpoint is its own: none that was taken over is in the way of the next."""

from pathlib import Path

import pytest

from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import WriterFencedError
from penstock.engine.spark.epoch_checkpoint import claim_checkpoint


def right(epoch: int, *, holds: bool = True) -> WriteFence:
    return WriteFence("s", epoch, lambda: holds)


def plan(checkpoint: Path, batch: int) -> None:
    """Write a batch down as Spark does, which makes the folders that it needs."""
    (checkpoint / "offsets").mkdir(parents=True, exist_ok=True)
    (checkpoint / "offsets" / str(batch)).touch()


def planned(folder: Path) -> dict[str, list[str]]:
    """The batches in each checkpoint that is there."""
    return {
        path.name: sorted(each.name for each in path.glob("offsets/*"))
        for path in sorted(folder.glob("checkpoint*"))
    }


def test_a_stream_that_was_never_begun_has_none_yet(tmp_path: Path) -> None:
    assert claim_checkpoint(tmp_path, right(1)) == tmp_path / "checkpoint.1"
    assert planned(tmp_path) == {}


def test_each_start_takes_what_the_one_before_left(tmp_path: Path) -> None:
    plan(claim_checkpoint(tmp_path, right(1)), 0)
    plan(claim_checkpoint(tmp_path, right(9)), 1)
    assert claim_checkpoint(tmp_path, right(10)) == tmp_path / "checkpoint.10"
    assert planned(tmp_path) == {"checkpoint.10": ["0", "1"]}


def test_that_of_an_earlier_version_is_taken_too(tmp_path: Path) -> None:
    plan(tmp_path / "checkpoint", 7)
    claim_checkpoint(tmp_path, right(3))
    assert planned(tmp_path) == {"checkpoint.3": ["7"]}


def test_what_a_host_plans_after_it_was_taken_over_is_read_by_nobody(tmp_path: Path) -> None:
    slow = claim_checkpoint(tmp_path, right(1))
    plan(slow, 0)
    successor = claim_checkpoint(tmp_path, right(2))
    plan(slow, 1)
    assert planned(tmp_path) == {"checkpoint.1": ["1"], "checkpoint.2": ["0"]}
    plan(successor, 1)
    claim_checkpoint(tmp_path, right(3))
    assert planned(tmp_path) == {"checkpoint.3": ["0", "1"]}


def test_a_host_that_slept_before_it_took_it_leaves_it_to_its_successor(tmp_path: Path) -> None:
    plan(claim_checkpoint(tmp_path, right(1)), 0)
    claim_checkpoint(tmp_path, right(3))
    with pytest.raises(WriterFencedError):
        claim_checkpoint(tmp_path, right(2, holds=False))
    assert planned(tmp_path) == {"checkpoint.3": ["0"]}


def test_a_control_store_that_was_made_anew_counts_epochs_from_one(tmp_path: Path) -> None:
    plan(claim_checkpoint(tmp_path, right(40)), 0)
    plan(tmp_path / "checkpoint.1", 5)
    assert claim_checkpoint(tmp_path, right(1)) == tmp_path / "checkpoint.1"
    assert planned(tmp_path) == {"checkpoint.1": ["0"]}


def test_files_that_are_only_called_alike_stay(tmp_path: Path) -> None:
    (tmp_path / "checkpoint.bak").touch()
    claim_checkpoint(tmp_path, right(1))
    assert planned(tmp_path) == {"checkpoint.bak": []}
