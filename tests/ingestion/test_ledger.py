import copy
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.ingestion.errors import LedgerError
from penstock.ingestion.ledger import DeliveryLedger, read_addresses, read_ledger_state, to_offset_runs
from penstock.ingestion.ledger.compaction import compact_segment
from penstock.ingestion.ledger.journal import read_entries
from penstock.ingestion.ledger.reader import DeliveryLedgerState, list_segments
from penstock.ingestion.producer.batch import SourceBatch
from penstock.ingestion.producer.chunk import Chunk
from penstock.ingestion.producer.readback import TailRecord
from penstock.ingestion.producer.recovery import find_arrived_offsets, mark_arrived

TARGETS = [("t", 0), ("t", 1), ("t.dead-letters", 0)]


def fill_ledger(directory: Path, chunks: int, segment_bytes: int = 2**26) -> list[tuple[int, str, int, int]]:
    """Write chunks of ten records to a ledger, and return where each record is."""
    tick = count(1_000)
    ledger = DeliveryLedger(directory, lambda: next(tick), segment_bytes)
    ledger.start_session(TARGETS, [-1, -1, -1], "a test")
    following, expected, chance = [0, 0, 0], [], random.Random(4)
    for number in range(chunks):
        first = number * 10
        ledger.record_intent(first, 10, {"next": first})
        lanes = [chance.randrange(3) for _ in range(10)]
        offsets: dict[int, list[int]] = {}
        for place, lane in enumerate(lanes):
            following[lane] += chance.choice([0, 0, 0, 2])
            offsets.setdefault(lane, []).append(following[lane])
            expected.append((first + place, *TARGETS[lane], following[lane]))
            following[lane] += 1
        ledger.record_acknowledgements(
            [(first, lanes, {lane: to_offset_runs(found) for lane, found in offsets.items()})]
        )
    ledger.close(clean=True)
    return expected


def test_every_address_is_given_back_over_all_segments(tmp_path: Path):
    expected = fill_ledger(tmp_path / "feed", 100, segment_bytes=1_000)
    assert len(list_segments(tmp_path / "feed")) > 5
    assert [tuple(address) for address in read_addresses(tmp_path / "feed")] == expected
    for first, number in ((0, 1), (9, 3), (123, 456), (995, 100), (1_000, 5)):
        found = [tuple(address) for address in read_addresses(tmp_path / "feed", first, number)]
        assert found == expected[first : first + number]
    state = read_ledger_state(tmp_path / "feed")
    assert (state.acknowledged_until, state.pending_intents, state.last_intent.position) == (
        1_000,
        [],
        {"next": 990},
    )


def test_a_segment_that_is_over_takes_few_bytes_a_record(tmp_path: Path):
    fill_ledger(tmp_path / "feed", 600, segment_bytes=20_000)
    over = list_segments(tmp_path / "feed")[:-1]
    kept = sum(1 for path in over for _ in read_entries(path))
    assert len(over) > 2
    assert kept <= 2 * len(over), "an entry for where a segment begins, and one for its addresses"
    # The offsets of this test have a gap after every fourth record, which is what costs.
    assert sum(path.stat().st_size for path in over) < 5 * 6_000


def test_a_segment_is_packed_whole_or_not_at_all(tmp_path: Path):
    expected = fill_ledger(tmp_path / "feed", 60, segment_bytes=2**20)
    (path,) = list_segments(tmp_path / "feed")
    path.with_suffix(".packed").write_bytes(b"cut off by a kill")
    compact_segment(path)
    assert [tuple(address) for address in read_addresses(tmp_path / "feed")] == expected


class SimulatedKillError(BaseException):
    pass


@contextmanager
def kill_at_step(step: int) -> Iterator[None]:
    """Die at the so-manieth call that changes something on the disk; of what was being written half is there."""
    steps = count()

    def dying(name: str) -> Any:
        # What is synced makes a difference only to a power cut, which no test can bring about.
        call = (lambda _handle: None) if name == "fdatasync" else getattr(os, name)

        def once_more(*arguments: Any) -> Any:
            if next(steps) != step:
                return call(*arguments)
            if name == "write":
                call(arguments[0], arguments[1][: len(arguments[1]) // 2])
            raise SimulatedKillError

        return once_more

    names = ("write", "fdatasync", "rename", "replace", "unlink", "truncate")
    with ExitStack() as patched, suppress(SimulatedKillError):
        for name in names:
            patched.enter_context(mock.patch.object(os, name, dying(name)))
        yield


def run_ledger(directory: Path, until: int, opened: list[DeliveryLedger]) -> None:
    """Settle what is in doubt and go on, two records at a time of which one chunk more is in flight."""
    tick = count(1_000)
    opened.append(
        ledger := DeliveryLedger(directory, lambda: next(tick), max_segment_bytes=120, retention_ms=10**6)
    )
    acknowledge_all(ledger)
    ledger.start_session(TARGETS, [ledger.state.acknowledged_until - 1, -1, -1], "a test")
    for first in range(ledger.state.acknowledged_until, until, 4):
        ledger.record_intent(first, 2, {"next": first})
        ledger.record_intent(first + 2, 2, {"next": first + 2})
        acknowledge_all(ledger)


def close_handles(ledger: DeliveryLedger) -> None:
    """Close what the end of a process closes, and write nothing."""
    for handle in (ledger._lock_handle, ledger._journal._file):
        with suppress(OSError):
            os.close(handle)


def acknowledge_all(ledger: DeliveryLedger) -> None:
    for intent in tuple(ledger.state.pending_intents):
        ledger.record_acknowledgements([(intent.first_sequence, [0, 0], {0: [(intent.first_sequence, 2)]})])


@settings(deadline=None, max_examples=50)
@example([7, 3])
@example([0, 0])
@given(st.lists(st.integers(0, 40), max_size=4))
def test_a_ledger_killed_at_any_step_goes_on_with_every_address(kills: list[int]):
    with TemporaryDirectory() as folder:
        for kill in [*kills, -1]:
            opened: list[DeliveryLedger] = []
            with kill_at_step(kill):
                run_ledger(Path(folder), 40, opened)
            for ledger in opened:
                close_handles(ledger)
        found = [(address.sequence, address.offset) for address in read_addresses(Path(folder))]
        assert found == [(number, number) for number in range(len(found))]
        assert len(found) >= 40


def test_a_segment_keeps_what_sessions_and_abandoned_records_say(tmp_path: Path):
    for _ in range(3):
        ledger = DeliveryLedger(tmp_path / "feed", lambda: 5)
        ledger.start_session(TARGETS, [9, 9, 9], "a test", "round-robin")
        first = ledger.state.acknowledged_until
        ledger.record_intent(first, 2, None)
        ledger.record_acknowledgements([(first, [0, 1], {0: [(10, 1)], 1: [(10, 1)]})])
        ledger.record_intent(first + 2, 3, None)
        ledger.record_abandonment(first + 2, 3)
        ledger.close(clean=False)
    before, state = list(read_addresses(tmp_path / "feed")), read_ledger_state(tmp_path / "feed")
    (path,) = list_segments(tmp_path / "feed")
    compact_segment(path)
    after = read_ledger_state(tmp_path / "feed")
    assert list(read_addresses(tmp_path / "feed")) == before
    assert (after.acknowledged_until, after.targets, after.partitioner_name) == (
        state.acknowledged_until,
        state.targets,
        "round-robin",
    )


def test_addresses_are_kept_as_long_as_the_topic_keeps_records(tmp_path: Path):
    now = [0]
    ledger = DeliveryLedger(tmp_path / "feed", lambda: now[0], max_segment_bytes=500, retention_ms=1_000)
    ledger.start_session(TARGETS, [-1, -1, -1], "a test")
    for number in range(400):
        now[0] += 10
        ledger.record_intent(number, 1, {"next": number})
        ledger.record_acknowledgements([(number, [0], {0: [(number, 1)]})])
    kept = [address.sequence for address in read_addresses(tmp_path / "feed")]
    ledger.close(clean=True)
    assert kept == list(range(kept[0], 400))
    assert 100 <= len(kept) < 130, "those of the last second, and the rest of their segment"
    assert len(list_segments(tmp_path / "feed")) < 30
    assert read_ledger_state(tmp_path / "feed").acknowledged_until == 400
    assert DeliveryLedger(tmp_path / "feed", lambda: now[0]).state.last_intent.position == {"next": 399}


def test_a_ledger_cut_anywhere_goes_on_from_its_last_whole_entry(tmp_path: Path):
    fill_ledger(tmp_path / "whole", 2)
    (whole,) = list_segments(tmp_path / "whole")
    content, states = whole.read_bytes(), [DeliveryLedgerState()]
    for entry in read_entries(whole):
        state = copy.deepcopy(states[-1])
        state.apply_entry(entry)
        states.append(state)
    for cut in range(len(content)):
        directory = tmp_path / f"cut-{cut}"
        directory.mkdir()
        (directory / whole.name).write_bytes(content[:cut])
        ledger = DeliveryLedger(directory, lambda: 1)
        assert ledger.state in states
        ledger.start_session(TARGETS, [-1, -1, -1], "a test")
        ledger.close(clean=True)
        assert read_ledger_state(directory).source == "a test"


def test_damage_in_the_middle_is_refused_with_its_place(tmp_path: Path):
    fill_ledger(tmp_path / "feed", 3)
    (path,) = list_segments(tmp_path / "feed")
    content = bytearray(path.read_bytes())
    content[20] ^= 0xFF
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(LedgerError, match="damaged at byte 0"):
            DeliveryLedger(tmp_path / "feed", lambda: 1)


@given(st.sets(st.integers(0, 60)))
def test_runs_are_the_offsets_they_were_made_of(offsets: set[int]):
    runs = to_offset_runs(sorted(offsets))
    assert [offset for first, length in runs for offset in range(first, first + length)] == sorted(offsets)


@given(st.randoms(use_true_random=False))
def test_what_arrived_is_told_from_what_did_not_and_from_what_others_wrote(chance: random.Random):
    chunks, sent = [], [[], [], []]
    for number in range(4):
        lanes = [chance.randrange(2) for _ in range(6)]
        values = [b"%d" % chance.randrange(3) + b"-%d" % (number * 6 + place) for place in range(6)]
        chunks.append(Chunk(number * 6, SourceBatch(values), lanes, [b"k"] * 6))
        for place, lane in enumerate(lanes):
            sent[lane].append((number * 6 + place, values[place]))
    tails, expected = [], {}
    for lane in range(2):
        tail, offset = [], chance.randrange(100)
        for sequence, value in sent[lane][: chance.randint(0, len(sent[lane]))]:
            while chance.random() < 0.3:
                tail.append(TailRecord(offset, b"other", value, {}))
                offset += chance.randint(1, 3)
            tail.append(TailRecord(offset, b"k", value, {}))
            expected[sequence] = offset
            offset += 1
        tails.append(tail)
    offsets = find_arrived_offsets(chunks, [*tails, []], "feed")
    assert offsets == expected
    left = [
        (chunk.first_sequence, places) for chunk in chunks for places in mark_arrived(chunk, offsets).values()
    ]
    missing = {first + place for first, places in left for place in places}
    assert missing == set(range(24)) - expected.keys()
