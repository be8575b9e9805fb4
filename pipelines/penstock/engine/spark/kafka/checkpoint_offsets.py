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
    ends = read_end_offsets(checkpoint, spark_batch)
    starts = (
        read_end_offsets(checkpoint, spark_batch - 1) if spark_batch else _read_initial_offsets(checkpoint)
    )
    return tuple(
        OffsetRange(topic, int(partition), starts.get(topic, {}).get(partition, 0), end)
        for topic, partitions in sorted(ends.items())
        for partition, end in sorted(partitions.items(), key=lambda item: int(item[0]))
    )


def read_end_offsets(checkpoint: Path, spark_batch: int) -> PartitionOffsets:
    """Return the end offsets of a micro-batch. Raises JournalError if they are missing or damaged."""
    return _read_offsets(checkpoint / "offsets" / str(spark_batch), line_count=3)


def list_checkpoint_files(checkpoint: Path, spark_batch: int) -> list[Path]:
    """Return the files that Spark needs to continue after a micro-batch; it syncs none of them."""
    offsets = checkpoint / "offsets"
    batches = [number for number in (spark_batch - 1, spark_batch) if number >= 0]
    files = [
        checkpoint / "metadata",
        checkpoint / "sources" / "0" / "0",
        *(offsets / str(number) for number in batches),
    ]
    return [*files, *(file.with_name(f".{file.name}.crc") for file in files)]


def _read_initial_offsets(checkpoint: Path) -> PartitionOffsets:
    return _read_offsets(checkpoint / "sources" / "0" / "0", line_count=2)


def _read_offsets(path: Path, line_count: int) -> PartitionOffsets:
    """Return the offsets of the only source, which the last line of the file holds as JSON."""
    try:
        lines = path.read_bytes().lstrip(b"\\0").decode("utf-8").splitlines()
        if len(lines) < line_count:
            raise ValueError(f"it has {len(lines)} lines of {line_count}")
        offsets: PartitionOffsets = json.loads(lines[-1][lines[-1].index("{") :])
    except (OSError, ValueError, IndexError) as problem:
        fix = "`penstock stream repair NAME`, with the name of the stream, shows how it can resume"
        raise JournalError(path, f"cannot be read ({problem})", fix) from problem
    return offsets
