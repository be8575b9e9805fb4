"""Removes what a power cut tore of Spark's checkpoint, because Spark does not start with a torn file.

Spark syncs none of its files. The engine syncs those of a batch before its outcome, so only files of a batch that
has no outcome can be torn. Nothing of that batch was shown, so Spark may plan it again, and otherwise.
"""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from penstock.engine.errors import JournalError
from penstock.engine.spark.kafka.checkpoint_offsets import read_end_offsets

log = logging.getLogger(__name__)


def remove_torn_files(checkpoint: Path, last_spark_batch: int | None) -> None:
    """Remove torn files of micro-batches after the last committed one; of the whole checkpoint if there is none."""
    if last_spark_batch is None and checkpoint.exists() and not _is_json(checkpoint / "metadata"):
        log.warning("Torn checkpoint of Spark removed (%s)", checkpoint)
        shutil.rmtree(checkpoint)
        return
    last_committed = -1 if last_spark_batch is None else last_spark_batch
    for path in [*_list_torn_offsets(checkpoint, last_committed), *_list_torn_commits(checkpoint)]:
        log.warning("Torn file of Spark's checkpoint removed (%s)", path)
        path.unlink()
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def has_planned(checkpoint: Path, spark_batch: int) -> bool:
    """Whether Spark has planned a micro-batch, and repeats it."""
    return (checkpoint / "offsets" / str(spark_batch)).exists()


def _list_torn_offsets(checkpoint: Path, last_committed: int) -> Iterator[Path]:
    for path in _list_batch_files(checkpoint / "offsets"):
        if int(path.name) > last_committed:
            try:
                read_end_offsets(checkpoint, int(path.name))
            except JournalError:
                yield path


def _list_torn_commits(checkpoint: Path) -> Iterator[Path]:
    """Yield torn marks of finished batches. Without a mark, Spark runs its batch again, and the engine skips it."""
    return (path for path in _list_batch_files(checkpoint / "commits") if not _is_json(path))


def _list_batch_files(folder: Path) -> list[Path]:
    return [path for path in folder.glob("*") if path.name.isdecimal()]


def _is_json(path: Path) -> bool:
    """Whether the last line of a file is JSON."""
    try:
        msgspec.json.decode(path.read_bytes().splitlines()[-1])
    except (OSError, IndexError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True
