"""Delivery of records to the topics of a demonstration, with the ledgered producer."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

from penstock.core.clock import now_ms
from penstock.core.progress import ProgressReporter
from penstock.engine.batch.intent import OffsetRange
from penstock.ingestion.contracts import Contract, json_codec
from penstock.ingestion.feed import Feed
from penstock.ingestion.ledger import read_addresses
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.checker import encode_batch
from penstock.ingestion.sources.source import ReplayableSource
from penstock.platform.demo.timed_records import TimedRecord
from penstock.platform.errors import DemoError

RECORDS_PER_BATCH = 2_000
PartitionKey = tuple[str, int]


class PreparedSource(ReplayableSource):
    """A source of prepared records. Its position is the number of records read."""

    def __init__(self, contract: Contract, timed_records: Sequence[TimedRecord]) -> None:
        self.description = f"{len(timed_records)} prepared records of {contract.topic}"
        self._contract = contract
        self._records = [sending.record for sending in timed_records]

    def read(self, position: Any | None) -> Iterator[SourceBatch]:
        """Yield batches of the records from a position on."""
        encode = json_codec(self._contract).encode
        for first in range(position or 0, len(self._records), RECORDS_PER_BATCH):
            yield encode_batch(
                self._contract, self._records[first : first + RECORDS_PER_BATCH], first, encode
            )


@dataclass(frozen=True)
class DemoDelivery:
    """The send times of the records by partition, and the offset of the first record of each partition."""

    send_times: Mapping[PartitionKey, Sequence[int]]
    start_offsets: Mapping[PartitionKey, int]

    def end_offsets(self, before_ms: int) -> dict[PartitionKey, int]:
        """Return the end offset of each partition at a time."""
        return {
            partition_key: self.start_offsets[partition_key]
            + sum(sent_at_ms < before_ms for sent_at_ms in partition_times)
            for partition_key, partition_times in self.send_times.items()
        }

    def offset_ranges(self, from_ms: int, until_ms: int) -> tuple[OffsetRange, ...]:
        """Return the offset range of each partition between two times; empty ranges are included."""
        starts, ends = self.end_offsets(from_ms), self.end_offsets(until_ms)
        return tuple(
            OffsetRange(topic, number, starts[topic, number], end) for (topic, number), end in ends.items()
        )


def deliver_records(
    bootstrap: str,
    contract: Contract,
    timed_records: Sequence[TimedRecord],
    start_offsets: Mapping[PartitionKey, int],
    folder: Path,
    report_progress: ProgressReporter,
) -> dict[PartitionKey, list[int]]:
    """Send records in order, and return the send times by partition and offset.

    `start_offsets` has the next offset of each partition before the delivery.
    """
    feed = Feed(PreparedSource(contract, timed_records), contract, bootstrap, folder, now_ms)
    summary = feed.run(
        Event(),
        lambda progress: report_progress(f"{progress.acknowledged_records} of {len(timed_records)} records"),
    )
    if not summary.complete or summary.acknowledged_records != len(timed_records) or summary.dead_letters:
        raise DemoError(
            f"the broker at {bootstrap} acknowledged {summary.acknowledged_records} of {len(timed_records)} "
            f"records for {contract.topic}, {summary.dead_letters} of them as dead letters; "
            f"see its log next to {folder}"
        )
    send_times: dict[PartitionKey, list[int]] = {partition_key: [] for partition_key in start_offsets}
    arrived: Counter[PartitionKey] = Counter()
    for address in read_addresses(folder):
        partition_key = (address.topic, address.partition)
        if address.offset != start_offsets[partition_key] + arrived[partition_key]:
            raise DemoError(
                f"another producer writes to {contract.topic} at {bootstrap}; stop it, then try again"
            )
        send_times[partition_key].append(timed_records[address.sequence].sent_at_ms)
        arrived[partition_key] += 1
    return send_times
