"""Records of a killed producer, found again in the topic."""

import random

from hypothesis import given
from hypothesis import strategies as st

from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.chunk import Chunk
from penstock.ingestion.producer.readback import TailRecord
from penstock.ingestion.producer.recovery import find_arrived_offsets, mark_arrived


@given(st.randoms(use_true_random=False))
def test_arrived_records_are_found_among_missing_and_foreign_ones(rng: random.Random):
    chunks, sent = [], [[], [], []]
    for number in range(4):
        lanes = [rng.randrange(2) for _ in range(6)]
        values = [b"%d" % rng.randrange(3) + b"-%d" % (number * 6 + index) for index in range(6)]
        chunks.append(Chunk(number * 6, SourceBatch(values), lanes, [b"k"] * 6))
        for index, lane in enumerate(lanes):
            sent[lane].append((number * 6 + index, values[index]))
    tails, expected = [], {}
    for lane in range(2):
        tail, offset = [], rng.randrange(100)
        for sequence, value in sent[lane][: rng.randint(0, len(sent[lane]))]:
            while rng.random() < 0.3:
                tail.append(TailRecord(offset, b"other", value, {}))
                offset += rng.randint(1, 3)
            tail.append(TailRecord(offset, b"k", value, {}))
            expected[sequence] = offset
            offset += 1
        tails.append(tail)
    offsets = find_arrived_offsets(chunks, [*tails, []], "feed")
    assert offsets == expected
    unacknowledged = [
        (chunk.first_sequence, indexes)
        for chunk in chunks
        for indexes in mark_arrived(chunk, offsets).values()
    ]
    missing = {first + index for first, indexes in unacknowledged for index in indexes}
    assert missing == set(range(24)) - expected.keys()
