"""The records of many scripts as one topic, so that one Spark job reads them all.

Each batch of a script is a partition of its own, so the job's output is divided by batch.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.conformance.engines import Script
from penstock.conformance.reference import InputRecord
from penstock.engine.batch.intent import OffsetRange

ELEMENTS_TOPIC = "elements"
KAFKA_RECORD_SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", tz="UTC")),
    ]
)


@dataclass(frozen=True)
class ScriptBatch:
    """A batch of a script, by the number of the script within its job."""

    script_index: int
    batch_id: int


@dataclass(frozen=True)
class SharedTopic:
    """The records of scripts that share a job: one partition per batch with records."""

    partitions: dict[ScriptBatch, int]
    table: pa.Table

    @property
    def ranges(self) -> tuple[OffsetRange, ...]:
        """The offset ranges of every partition."""
        columns = self.table.column("partition").to_pylist(), self.table.column("offset").to_pylist()
        offsets_by_partition: dict[int, list[int]] = {}
        for partition, offset in zip(*columns, strict=True):
            offsets_by_partition.setdefault(partition, []).append(offset)
        return tuple(
            OffsetRange(ELEMENTS_TOPIC, number, min(offsets), max(offsets) + 1)
            for number, offsets in offsets_by_partition.items()
        )


def build_shared_topic(scripts: Sequence[Script]) -> SharedTopic:
    """Put the records of scripts into one topic."""
    partitions: dict[ScriptBatch, int] = {}
    rows = []
    for script_batch, records in batches_with_records(scripts):
        partitions[script_batch] = len(partitions)
        rows += [to_kafka_row(record, partitions[script_batch]) for record in records]
    return SharedTopic(partitions, pa.Table.from_pylist(rows, schema=KAFKA_RECORD_SCHEMA))


def batches_with_records(scripts: Sequence[Script]) -> Iterator[tuple[ScriptBatch, Sequence[InputRecord]]]:
    """Yield each batch that has records, in order."""
    for number, script in enumerate(scripts):
        for batch in script.batches:
            if batch.records:
                yield ScriptBatch(number, batch.id), batch.records


def to_kafka_row(record: InputRecord, partition: int) -> dict[str, object]:
    """Return a record as a topic stores it."""
    value = json.dumps(record.fields).encode()
    return {"value": value, "topic": ELEMENTS_TOPIC, "partition": partition, "offset": record.offset}


def offset_range_of(records: Sequence[InputRecord]) -> OffsetRange:
    """Return the offset range of a batch's records in the script's own partition."""
    offsets = [record.offset for record in records]
    return OffsetRange(ELEMENTS_TOPIC, 0, min(offsets), max(offsets) + 1)
