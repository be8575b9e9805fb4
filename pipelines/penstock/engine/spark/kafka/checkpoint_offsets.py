"""Reads the offset ranges of a micro-batch from Spark's checkpoint.

Spark writes the end offset of each partition into its checkpoint before it runs a batch. A batch starts where the
previous one ended; the first batch starts at the initial offsets that the source recorded.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.errors import JournalError

PartitionOffsets = Mapping[str, Mapping[str, int]]


def read_batch_ranges(checkpoint: Path, spark_batch: int) -> tuple[OffsetRange, ...]:
    """Return the range of every known partition in a micro-batch, including those without new records."""
    ends = _read_offsets(checkpoint / "offsets" / str(spark_batch))
    starts = (
        _read_offsets(checkpoint / "offsets" / str(spark_batch - 1))
        if spark_batch
        else _read_initial_offsets(checkpoint)
    )
    return tuple(
        OffsetRange(topic, int(partition), starts.get(topic, {}).get(partition, 0), end)
        for topic, partitions in sorted(ends.items())
        for partition, end in sorted(partitions.items(), key=lambda item: int(item[0]))
    )


def _read_initial_offsets(checkpoint: Path) -> PartitionOffsets:
    return _read_offsets(checkpoint / "sources" / "0" / "0")


def _read_offsets(path: Path) -> PartitionOffsets:
    """Return the offsets of the only source, which the last line of the file holds as JSON."""
    try:
        lines = path.read_bytes().lstrip(b"\\0").decode("utf-8").splitlines()
        offsets: PartitionOffsets = json.loads(lines[-1][lines[-1].index("{") :])
    except (OSError, ValueError, IndexError) as problem:
        fix = "Restore the checkpoint from a backup, or replay the stream into new tables"
        raise JournalError(path, f"cannot be read ({problem})", fix) from problem
    return offsets
