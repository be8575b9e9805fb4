"""The rows of a stream ledger: how they group by partition."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

LEDGER_ORDER = [
    ("topic", "ascending"),
    ("partition", "ascending"),
    ("batch_id", "ascending"),
    ("start", "ascending"),
]
TopicPartition = tuple[str, int]


def group_by_partition(rows: pa.Table) -> Iterator[tuple[TopicPartition, pa.Table]]:
    """Yield the rows of each partition, ordered by batch."""
    partition_rows = rows.group_by(["topic", "partition"]).aggregate([]).sort_by(LEDGER_ORDER[:2]).to_pylist()
    ordered = rows.sort_by(LEDGER_ORDER)
    for partition_row in partition_rows:
        is_same_topic = pc.equal(ordered.column("topic"), partition_row["topic"])
        is_same_partition = pc.and_(
            is_same_topic, pc.equal(ordered.column("partition"), partition_row["partition"])
        )
        yield (partition_row["topic"], partition_row["partition"]), ordered.filter(is_same_partition)
