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

TARGETS = [("t", 0), ("t", 1), ("t.dead-letters", 0)]


def fill_ledger(directory: Path, chunks: int, segment_bytes: int = 2**26) -> list[tuple[int, str, int, int]]:
    """Write chunks of ten records to a ledger; return the address of each record."""
    tick = count(1_000)
    ledger = DeliveryLedger(directory, lambda: next(tick), segment_bytes)
    ledger.start_session(TARGETS, [-1, -1, -1], "a test")
    next_offsets, expected, rng = [0, 0, 0], [], random.Random(4)
    for number in range(chunks):
        first = number * 10
        ledger.record_intent(first, 10, {"next": first})
        lanes = [rng.randrange(3) for _ in range(10)]
        offsets: dict[int, list[int]] = {}
        for index, lane in enumerate(lanes):
            next_offsets[lane] += rng.choice([0, 0, 0, 2])
            offsets.setdefault(lane, []).append(next_offsets[lane])
            expected.append((first + index, *TARGETS[lane], next_offsets[lane]))
            next_offsets[lane] += 1
        ledger.record_acknowledgements(
            [(first, lanes, {lane: to_offset_runs(lane_offsets) for lane, lane_offsets in offsets.items()})]
        )
    ledger.close(clean=True)
    return expected


def test_addresses_are_read_across_segments(tmp_path: Path):
    expected = fill_ledger(tmp_path / "feed", 100, segment_bytes=1_000)
    assert len(list_segments(tmp_path / "feed")) > 5
    assert [tuple(address) for address in read_addresses(tmp_path / "feed")] == expected
    for first, number in ((0, 1), (9, 3), (123, 456), (995, 100), (1_000, 5)):
        addresses = [tuple(address) for address in read_addresses(tmp_path / "feed", first, number)]
        assert addresses == expected[first : first + number]
    state = read_ledger_state(tmp_path / "feed")
    assert (state.acknowledged_until, state.pending_intents, state.last_intent.position) == (
        1_000,
        [],
        {"next": 990},
    )


def test_a_closed_segment_takes_few_bytes_per_record(tmp_path: Path):
    fill_ledger(tmp_path / "feed", 600, segment_bytes=20_000)
    closed = list_segments(tmp_path / "feed")[:-1]
    entries = sum(1 for path in closed for _ in read_entries(path))
    assert len(closed) > 2
    assert entries <= 2 * len(closed), "a segment has one entry for its start and one for its addresses"
    # The offsets of this test have a gap after every fourth record, which takes space.
    assert sum(path.stat().st_size for path in closed) < 5 * 6_000


def test_compaction_replaces_a_segment_atomically(tmp_path: Path):
    expected = fill_ledger(tmp_path / "feed", 60, segment_bytes=2**20)
    (path,) = list_segments(tmp_path / "feed")
    path.with_suffix(".packed").write_bytes(b"cut off by a kill")
    compact_segment(path)
    assert [tuple(address) for address in read_addresses(tmp_path / "feed")] == expected


class SimulatedKillError(BaseException):
    pass


@contextmanager
def kill_at_step(step: int) -> Iterator[None]:
    """Simulate a kill at the given disk operation; a write is cut in half."""
    steps = count()

    def fail_at_step(name: str) -> Any:
        # A sync matters only for a power failure, which this does not simulate.
        call = (lambda _handle: None) if name == "fdatasync" else getattr(os, name)

        def call_or_fail(*arguments: Any) -> Any:
            if next(steps) != step:
                return call(*arguments)
            if name == "write":
                call(arguments[0], arguments[1][: len(arguments[1]) // 2])
            raise SimulatedKillError

        return call_or_fail

    names = ("write", "fdatasync", "rename", "replace", "unlink", "truncate")
    with ExitStack() as patched, suppress(SimulatedKillError):
        for name in names:
            patched.enter_context(mock.patch.object(os, name, fail_at_step(name)))
        yield


def run_ledger(directory: Path, until: int, opened: list[DeliveryLedger]) -> None:
    """Acknowledge pending intents and continue, with two chunks of two records in flight."""
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
    """Close the file handles, as the end of a process does, without writing."""
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
def test_a_ledger_killed_at_any_step_keeps_every_address(kills: list[int]):
    with TemporaryDirectory() as folder:
        for kill in [*kills, -1]:
            opened: list[DeliveryLedger] = []
            with kill_at_step(kill):
                run_ledger(Path(folder), 40, opened)
            for ledger in opened:
                close_handles(ledger)
        addresses = [(address.sequence, address.offset) for address in read_addresses(Path(folder))]
        assert addresses == [(number, number) for number in range(len(addresses))]
        assert len(addresses) >= 40


def test_compaction_preserves_sessions_and_abandoned_records(tmp_path: Path):
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


def test_addresses_expire_with_the_retention_of_the_topic(tmp_path: Path):
    now = [0]
    ledger = DeliveryLedger(tmp_path / "feed", lambda: now[0], max_segment_bytes=500, retention_ms=1_000)
    ledger.start_session(TARGETS, [-1, -1, -1], "a test")
    for number in range(400):
        now[0] += 10
        ledger.record_intent(number, 1, {"next": number})
        ledger.record_acknowledgements([(number, [0], {0: [(number, 1)]})])
    sequences = [address.sequence for address in read_addresses(tmp_path / "feed")]
    ledger.close(clean=True)
    assert sequences == list(range(sequences[0], 400))
    assert 100 <= len(sequences) < 130, "addresses of the last second, and the rest of their segment"
    assert len(list_segments(tmp_path / "feed")) < 30
    assert read_ledger_state(tmp_path / "feed").acknowledged_until == 400
    assert DeliveryLedger(tmp_path / "feed", lambda: now[0]).state.last_intent.position == {"next": 399}


def test_a_truncated_ledger_resumes_from_its_last_complete_entry(tmp_path: Path):
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


def test_a_damaged_entry_is_refused_with_its_position(tmp_path: Path):
    fill_ledger(tmp_path / "feed", 3)
    (path,) = list_segments(tmp_path / "feed")
    content = bytearray(path.read_bytes())
    content[20] ^= 0xFF
    path.write_bytes(content)
    for _ in range(2):
        with pytest.raises(LedgerError, match="damaged at byte 0"):
            DeliveryLedger(tmp_path / "feed", lambda: 1)


@given(st.sets(st.integers(0, 60)))
def test_offset_runs_contain_exactly_their_offsets(offsets: set[int]):
    runs = to_offset_runs(sorted(offsets))
    assert [offset for first, length in runs for offset in range(first, first + length)] == sorted(offsets)
