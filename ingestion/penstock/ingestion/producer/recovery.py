"""Recovery: finds out which records of the previous producer arrived."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer

from penstock.ingestion.errors import SourceError
from penstock.ingestion.ledger import DeliveryLedgerState, to_offset_runs
from penstock.ingestion.producer.batch import SourceBatch, concat_batches
from penstock.ingestion.producer.chunk import Chunk
from penstock.ingestion.producer.dead_letters import parse_dead_letter_sequence
from penstock.ingestion.producer.kafka_io import WaitCallback, ignore_wait
from penstock.ingestion.producer.readback import (
    TailRecord,
    check_topic_tail,
    match_offsets,
    read_records,
    settle_offset_ranges,
)

# (position, records to skip, record count) -> those records again, in one or more batches
ReplayRecords = Callable[[Any, int, int], Sequence[SourceBatch]]
MissingByTarget = Mapping[int, Sequence[int]]


def read_tails(
    reader: Consumer, state: DeliveryLedgerState, ledger: str, on_wait: WaitCallback = ignore_wait
) -> list[list[TailRecord]]:
    """Return, for each target, the records since its last acknowledged one."""
    ranges = settle_offset_ranges(reader, state.targets, on_wait)
    check_topic_tail(state.targets, state.last_offsets, ranges, ledger)
    return [
        read_records(reader, *target, last_offset + 1, end_offset - 1, on_wait)
        for target, last_offset, (_, end_offset) in zip(
            state.targets, state.last_offsets, ranges, strict=True
        )
    ]


def rebuild_chunks(
    state: DeliveryLedgerState,
    replay: ReplayRecords,
    assign_targets: Callable[[SourceBatch, int, int], tuple[list[int], Sequence[bytes | None]]],
) -> list[Chunk]:
    """Return the chunks in doubt, read again from their source and partitioned as before."""
    chunks = []
    for intent in state.pending_intents:
        batch = concat_batches(replay(intent.position, intent.skip_records, intent.record_count))
        if len(batch) != intent.record_count:
            raise SourceError(
                f"The source returned {intent.record_count} records at position {intent.position} before, but "
                f"{len(batch)} now. Restore its data, or use another producer name."
            )
        target_ids, keys = assign_targets(batch, intent.first_sequence, len(state.targets) - 1)
        chunks.append(Chunk(intent.first_sequence, batch, target_ids, keys))
    return chunks


def find_arrived_offsets(
    chunks: Sequence[Chunk], tails: Sequence[Sequence[TailRecord]], producer: str
) -> dict[int, int]:
    """Return the offset of each sequence in doubt that arrived."""
    offsets: dict[int, int] = {}
    for target_id, tail in enumerate(tails[:-1]):
        pairs = [pair for chunk in chunks for pair in chunk.expected_records(target_id)]
        sequences = [
            chunk.first_sequence + index for chunk in chunks for index in chunk.indexes_of(target_id)
        ]
        offsets |= zip(sequences, match_offsets(pairs, tail), strict=False)
    for record in tails[-1]:
        sequence = parse_dead_letter_sequence(producer, record.headers)
        if sequence is not None:
            offsets[sequence] = record.offset
    return offsets


def mark_arrived(chunk: Chunk, offsets: Mapping[int, int]) -> MissingByTarget:
    """Set the offsets of the records of a chunk that arrived; return the indexes of the others by target."""
    arrived_offsets: dict[int, list[int]] = defaultdict(list)
    missing: dict[int, list[int]] = defaultdict(list)
    for index, target_id in enumerate(chunk.target_ids):
        offset = offsets.get(chunk.first_sequence + index)
        if offset is None:
            missing[target_id].append(index)
        else:
            arrived_offsets[target_id].append(offset)
    chunk.offset_runs = {
        target_id: to_offset_runs(target_offsets) for target_id, target_offsets in arrived_offsets.items()
    }
    return missing
