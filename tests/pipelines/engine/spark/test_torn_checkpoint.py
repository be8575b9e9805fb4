"""After a power cut, Spark finds no torn file in its checkpoint."""

from pathlib import Path

import pytest

from penstock.engine.errors import JournalError
from penstock.engine.spark.kafka.checkpoint_offsets import read_end_offsets
from penstock.engine.spark.kafka.torn_checkpoint import has_planned, remove_torn_files

METADATA = '{"id":"1e6dc687"}'


def write_batch(checkpoint: Path, batch: int, offsets: str | None = None) -> None:
    """Write the files of a micro-batch as Spark does."""
    for folder in ("offsets", "commits"):
        (checkpoint / folder).mkdir(parents=True, exist_ok=True)
    (checkpoint / "metadata").write_text(METADATA)
    whole_offsets = f'v1\n{{"batchWatermarkMs":0}}\n{{"readings":{{"0":{batch}}}}}'
    (checkpoint / "offsets" / str(batch)).write_text(whole_offsets if offsets is None else offsets)
    (checkpoint / "offsets" / f".{batch}.crc").write_bytes(b"crc")
    (checkpoint / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')


@pytest.mark.parametrize("torn", ["", "v1\n", 'v1\n{"batchWatermarkMs":0}\n', "\0" * 40])
def test_torn_offsets_of_a_batch_without_an_outcome_are_removed(tmp_path: Path, torn: str) -> None:
    write_batch(tmp_path, 0)
    write_batch(tmp_path, 1, torn)
    remove_torn_files(tmp_path, last_spark_batch=0)
    assert (has_planned(tmp_path, 0), has_planned(tmp_path, 1)) == (True, False)
    assert not (tmp_path / "offsets" / ".1.crc").exists()


def test_damaged_offsets_of_a_committed_batch_stay_and_are_an_error(tmp_path: Path) -> None:
    write_batch(tmp_path, 0, "")
    remove_torn_files(tmp_path, last_spark_batch=0)
    with pytest.raises(JournalError, match="`penstock stream repair NAME`"):
        read_end_offsets(tmp_path, 0)


def test_a_torn_mark_of_a_finished_batch_is_removed(tmp_path: Path) -> None:
    write_batch(tmp_path, 0)
    (tmp_path / "commits" / "0").write_text("v1\n")
    remove_torn_files(tmp_path, last_spark_batch=0)
    assert not (tmp_path / "commits" / "0").exists()


def test_a_checkpoint_that_was_torn_before_the_first_outcome_is_removed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.1"
    write_batch(checkpoint, 0)
    (checkpoint / "metadata").write_text("")
    remove_torn_files(checkpoint, last_spark_batch=None)
    assert not checkpoint.exists()


def test_a_whole_checkpoint_stays(tmp_path: Path) -> None:
    write_batch(tmp_path, 0)
    files = sorted(tmp_path.rglob("*"))
    remove_torn_files(tmp_path, last_spark_batch=0)
    assert sorted(tmp_path.rglob("*")) == files
