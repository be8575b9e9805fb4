"""Making a segment small once nothing is added to it any more.

A slow feed writes an intent and an acknowledgement for every few records, a hundred bytes a record. Of a segment
that is over nobody asks what was intended; and the addresses of consecutive records, put together, take one to two
bytes each.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from penstock.ingestion.ledger.addresses import Runs, pack_lanes, unpack_lanes
from penstock.ingestion.ledger.entries import Abandoned, Acknowledged, Closed, Entry, Intent, Session
from penstock.ingestion.ledger.journal import Journal, read_entries

TOGETHER = 100_000


def pack(path: Path) -> None:
    """Write a segment that is over anew, with the same addresses in it; whole or not at all."""
    fresh = Journal(path.with_suffix(".packed"))
    os.truncate(fresh.path, 0)
    for entry in packed(read_entries(path)):
        fresh.append(entry)
    fresh.close()
    fresh.path.replace(path)


def packed(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Return entries that tell the same addresses in fewer words."""
    gathered: list[Acknowledged] = []
    count = 0
    for entry in entries:
        if isinstance(entry, Acknowledged) and count < TOGETHER:
            gathered.append(entry)
            count += entry.count
        elif isinstance(entry, Session | Abandoned | Acknowledged):
            yield from _joined(gathered)
            gathered, count = ([entry], entry.count) if isinstance(entry, Acknowledged) else ([], 0)
            if not gathered:
                yield entry
        else:
            assert isinstance(entry, Intent | Closed)
    yield from _joined(gathered)


def _joined(entries: list[Acknowledged]) -> Iterator[Acknowledged]:
    if not entries:
        return
    lanes: list[int] = []
    runs: Runs = {}
    for entry in entries:
        lanes += unpack_lanes(entry.lanes)
        for lane, stretches in entry.runs.items():
            _follow_on(runs.setdefault(lane, []), stretches)
    yield Acknowledged(entries[0].first, len(lanes), pack_lanes(lanes), runs, entries[-1].at_ms)


def _follow_on(runs: list[tuple[int, int]], following: Iterable[tuple[int, int]]) -> None:
    for first, length in following:
        if runs and sum(runs[-1]) == first:
            runs[-1] = (runs[-1][0], runs[-1][1] + length)
        else:
            runs.append((first, length))
