"""What a topic would hold of many scripts' records, so that one Spark job reads them all.

A script's batch is a partition of its own there: what a job says is said by partition, and thereby by batch.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.pipelines.batch.intent import Range
from penstock.pipelines.reference import Record
from penstock.pipelines.transcripts.engine import Script

TOPIC = "elements"
STORED = pa.schema(
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
class Place:
    """A batch of a script, by the number of the script among those that share a job."""

    script: int
    batch: int


@dataclass(frozen=True)
class Shared:
    """The records of several scripts that share a job: for each batch that has records, its own partition."""

    partitions: dict[Place, int]
    table: pa.Table

    @property
    def ranges(self) -> tuple[Range, ...]:
        """The offsets of every partition."""
        places = self.table.column("partition").to_pylist(), self.table.column("offset").to_pylist()
        spans: dict[int, list[int]] = {}
        for partition, offset in zip(*places, strict=True):
            spans.setdefault(partition, []).append(offset)
        return tuple(Range(TOPIC, number, min(held), max(held) + 1) for number, held in spans.items())


def shared(scripts: Sequence[Script]) -> Shared:
    """Put the records of scripts into one topic."""
    partitions: dict[Place, int] = {}
    rows = []
    for place, records in batches(scripts):
        partitions[place] = len(partitions)
        rows += [stored(record, partitions[place]) for record in records]
    return Shared(partitions, pa.Table.from_pylist(rows, schema=STORED))


def batches(scripts: Sequence[Script]) -> Iterator[tuple[Place, Sequence[Record]]]:
    """Yield each batch that has records, in order."""
    for number, script in enumerate(scripts):
        for batch in script.batches:
            if batch.records:
                yield Place(number, batch.id), batch.records


def stored(record: Record, partition: int) -> dict[str, object]:
    """Return a record as a topic holds it."""
    value = json.dumps(record.fields).encode()
    return {"value": value, "topic": TOPIC, "partition": partition, "offset": record.offset}


def range_of(records: Sequence[Record]) -> Range:
    """The offsets of a batch's records in the script's own partition."""
    offsets = [record.offset for record in records]
    return Range(TOPIC, 0, min(offsets), max(offsets) + 1)
