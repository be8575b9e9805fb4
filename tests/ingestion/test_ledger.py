import copy
import random
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ingestion.errors import LedgerError
from penstock.ingestion.ledger import Ledger, read_addresses, read_state, runs_of
from penstock.ingestion.ledger.journal import read_entries
from penstock.ingestion.ledger.ledger import LedgerState, segments
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.chunk import Chunk
from penstock.ingestion.producer.readback import Found
from penstock.ingestion.producer.recovery import arrived, fill_in

TARGETS = [("t", 0), ("t", 1), ("t.dead-letters", 0)]


def filled(directory: Path, chunks: int, segment_bytes: int = 2**26) -> list[tuple[int, str, int, int]]:
    """Write chunks of ten records to a ledger, and return where each record is."""
    tick = count(1_000)
    ledger = Ledger(directory, lambda: next(tick), segment_bytes)
    ledger.begin(TARGETS, [-1, -1, -1], "a test")
    following, expected, chance = [0, 0, 0], [], random.Random(4)
    for number in range(chunks):
        first = number * 10
        ledger.intend(first, 10, {"next": first})
        lanes = [chance.randrange(3) for _ in range(10)]
        offsets: dict[int, list[int]] = {}
        for place, lane in enumerate(lanes):
            following[lane] += chance.choice([0, 0, 0, 2])
            offsets.setdefault(lane, []).append(following[lane])
            expected.append((first + place, *TARGETS[lane], following[lane]))
            following[lane] += 1
        ledger.acknowledge([(first, lanes, {lane: runs_of(found) for lane, found in offsets.items()})])
    ledger.close(in_order=True)
    return expected


def test_every_address_is_given_back_over_all_segments(tmp_path: Path):
    expected = filled(tmp_path / "feed", 300, segment_bytes=2_000)
    assert len(segments(tmp_path / "feed")) > 5
    assert [tuple(address) for address in read_addresses(tmp_path / "feed")] == expected
    state = read_state(tmp_path / "feed")
    assert (state.reached, state.intents, state.last.position) == (3_000, [], {"next": 2_990})


def test_a_ledger_cut_anywhere_goes_on_from_its_last_whole_entry(tmp_path: Path):
    filled(tmp_path / "whole", 3)
    (whole,) = segments(tmp_path / "whole")
    content, states = whole.read_bytes(), [LedgerState()]
    for entry in read_entries(whole):
        state = copy.deepcopy(states[-1])
        state.follow(entry)
        states.append(state)
    for cut in range(len(content)):
        directory = tmp_path / f"cut-{cut}"
        directory.mkdir()
        (directory / whole.name).write_bytes(content[:cut])
        ledger = Ledger(directory, lambda: 1)
        assert ledger.state in states
        ledger.begin(TARGETS, [-1, -1, -1], "a test")
        ledger.close(in_order=True)
        assert read_state(directory).source == "a test"


def test_damage_in_the_middle_is_refused_with_its_place(tmp_path: Path):
    filled(tmp_path / "feed", 3)
    (path,) = segments(tmp_path / "feed")
    content = bytearray(path.read_bytes())
    content[20] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(LedgerError, match="damaged at byte 0"):
        Ledger(tmp_path / "feed", lambda: 1)


@given(st.sets(st.integers(0, 60)))
def test_runs_are_the_offsets_they_were_made_of(offsets: set[int]):
    runs = runs_of(sorted(offsets))
    assert [offset for first, length in runs for offset in range(first, first + length)] == sorted(offsets)


@given(st.randoms(use_true_random=False))
def test_what_arrived_is_told_from_what_did_not_and_from_what_others_wrote(chance: random.Random):
    chunks, sent = [], [[], [], []]
    for number in range(4):
        lanes = [chance.randrange(2) for _ in range(6)]
        values = [b"%d" % chance.randrange(3) + b"-%d" % (number * 6 + place) for place in range(6)]
        chunks.append(Chunk(number * 6, Batch(values), lanes, [b"k"] * 6))
        for place, lane in enumerate(lanes):
            sent[lane].append((number * 6 + place, values[place]))
    tails, expected = [], {}
    for lane in range(2):
        tail, offset = [], chance.randrange(100)
        for sequence, value in sent[lane][: chance.randint(0, len(sent[lane]))]:
            while chance.random() < 0.3:
                tail.append(Found(offset, b"other", value, {}))
                offset += chance.randint(1, 3)
            tail.append(Found(offset, b"k", value, {}))
            expected[sequence] = offset
            offset += 1
        tails.append(tail)
    offsets = arrived(chunks, [*tails, []], "feed")
    assert offsets == expected
    left = [(chunk.first, places) for chunk in chunks for places in fill_in(chunk, offsets).values()]
    missing = {first + place for first, places in left for place in places}
    assert missing == set(range(24)) - expected.keys()
