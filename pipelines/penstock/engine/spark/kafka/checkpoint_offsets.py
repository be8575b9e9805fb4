"""What Spark wrote down of a micro-batch: which offsets it is made of.

Spark plans a batch before anybody sees it, and writes the end of each partition into its checkpoint; the start is
the end of the batch before, and for the first batch what the source wrote when it began.
"""

import json
from collections.abc import Mapping
from pathlib import Path

from penstock.engine.batch.intent import OffsetRange
from penstock.engine.errors import JournalError

PartitionOffsets = Mapping[str, Mapping[str, int]]


def read_batch_ranges(checkpoint: Path, spark_batch: int) -> tuple[OffsetRange, ...]:
    """The offsets of a micro-batch, for every partition that is known, those without news included."""
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
    """The last line of the file is the offsets of the one source, as JSON."""
    try:
        lines = path.read_bytes().lstrip(b"\\0").decode("utf-8").splitlines()
        offsets: PartitionOffsets = json.loads(lines[-1][lines[-1].index("{") :])
    except (OSError, ValueError, IndexError) as problem:
        fix = "Restore the checkpoint from a backup, or replay the stream into new tables"
        raise JournalError(path, f"cannot be read ({problem})", fix) from problem
    return offsets
