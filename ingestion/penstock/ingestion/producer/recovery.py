"""What a producer does first: find out how the one before it ended."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer

from penstock.ingestion.errors import SourceError
from penstock.ingestion.ledger import LedgerState, runs_of
from penstock.ingestion.producer.batch import Batch, joined
from penstock.ingestion.producer.chunk import Chunk
from penstock.ingestion.producer.client import Told, silently
from penstock.ingestion.producer.dead_letters import sequence_of
from penstock.ingestion.producer.readback import Found, check_tail, match, read_range, settle

# (position, records to skip, records) -> those records again, in as many batches as it takes
Replay = Callable[[Any, int, int], Sequence[Batch]]
Missing = Mapping[int, Sequence[int]]


def read_tails(
    reader: Consumer, state: LedgerState, ledger: str, waiting: Told = silently
) -> list[list[Found]]:
    """Return, for each target, what was written to it since the last acknowledged record."""
    ranges = settle(reader, state.targets, waiting)
    check_tail(state.targets, state.ends, ranges, ledger)
    return [
        read_range(reader, *target, end + 1, high - 1, waiting)
        for target, end, (_, high) in zip(state.targets, state.ends, ranges, strict=True)
    ]


def in_doubt(
    state: LedgerState,
    replay: Replay,
    route: Callable[[Batch, int, int], tuple[list[int], Sequence[bytes | None]]],
) -> list[Chunk]:
    """Return the chunks that may or may not have arrived, made again from their source and routed as before."""
    chunks = []
    for intent in state.intents:
        batch = joined(replay(intent.position, intent.skip, intent.count))
        if len(batch) != intent.count:
            raise SourceError(
                f"the source gave {intent.count} records from position {intent.position} before, and now "
                f"{len(batch)}: it must repeat itself; bring its data back, or use another producer name"
            )
        lanes, keys = route(batch, intent.first, len(state.targets) - 1)
        chunks.append(Chunk(intent.first, batch, lanes, keys))
    return chunks


def arrived(chunks: Sequence[Chunk], tails: Sequence[Sequence[Found]], producer: str) -> dict[int, int]:
    """Return the offset of each sequence in doubt that did arrive."""
    offsets: dict[int, int] = {}
    for lane, tail in enumerate(tails[:-1]):
        pairs = [pair for chunk in chunks for pair in chunk.expected(lane)]
        sequences = [chunk.first + place for chunk in chunks for place in chunk.places(lane)]
        offsets |= zip(sequences, match(pairs, tail), strict=False)
    for record in tails[-1]:
        sequence = sequence_of(producer, record.headers)
        if sequence is not None:
            offsets[sequence] = record.offset
    return offsets


def fill_in(chunk: Chunk, offsets: Mapping[int, int]) -> Missing:
    """Note in a chunk which of its records arrived, and return the places of the others by target."""
    known: dict[int, list[int]] = defaultdict(list)
    missing: dict[int, list[int]] = defaultdict(list)
    for place, lane in enumerate(chunk.lanes):
        offset = offsets.get(chunk.first + place)
        if offset is None:
            missing[lane].append(place)
        else:
            known[lane].append(offset)
    chunk.runs = {lane: runs_of(found) for lane, found in known.items()}
    return missing
