"""Reading a ledger: where its producer stands, and where each of its records is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from penstock.ingestion.ledger.addresses import Address, Runs, addresses_in
from penstock.ingestion.ledger.entries import Abandoned, Acknowledged, Entry, Intent, Session
from penstock.ingestion.ledger.journal import read_entries


@dataclass(slots=True)
class LedgerState:
    """Where a producer stands: below `reached` every record is settled; `intents` may or may not have arrived."""

    targets: list[tuple[str, int]] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    reached: int = 0
    source: str = ""
    route: str = ""
    intents: list[Intent] = field(default_factory=list)
    last: Intent | None = None

    def follow(self, entry: Entry) -> None:
        """Take in one entry."""
        if isinstance(entry, Session):
            self.targets, self.ends, self.reached = list(entry.targets), list(entry.ends), entry.reached
            self.source, self.last, self.route = entry.source, entry.last, entry.route
        elif isinstance(entry, Intent):
            self.intents.append(entry)
            self.last = entry
        elif isinstance(entry, Acknowledged | Abandoned):
            self.reached = entry.first + entry.count
            self.intents = [intent for intent in self.intents if intent.first >= self.reached]
            if isinstance(entry, Acknowledged):
                self._advance(entry.runs)

    def _advance(self, runs: Runs) -> None:
        for lane, stretches in runs.items():
            first, length = stretches[-1]
            self.ends[lane] = first + length - 1


def segments(directory: Path) -> list[Path]:
    """Return a ledger's files, oldest first."""
    return sorted(directory.glob("*.ledger"))


def read_state(directory: Path) -> LedgerState:
    """Return where a producer stands, without disturbing it."""
    return state_of(segments(directory))


def state_of(paths: Sequence[Path]) -> LedgerState:
    """Return what the segments of a ledger say in the end; the last one begins with all that it needs to know."""
    state = LedgerState()
    for path in paths[-1:]:
        for entry in read_entries(path):
            state.follow(entry)
    return state


def read_addresses(directory: Path, first: int = 0, count: int | None = None) -> Iterator[Address]:
    """Yield the addresses of records from sequence `first` on, all or so many, in order; the ledger may be in use.

    What is not acknowledged, was abandoned, or is older than what the ledger keeps has none and is left out.
    """
    end = float("inf") if count is None else first + count
    targets: list[tuple[str, int]] = []
    for path in _from(segments(directory), first):
        for entry in read_entries(path):
            if isinstance(entry, Session):
                targets = entry.targets
            elif isinstance(entry, Acknowledged) and entry.first >= end:
                return
            elif isinstance(entry, Acknowledged) and entry.first + entry.count > first:
                yield from (one for one in addresses_in(entry, targets) if first <= one.sequence < end)


def _from(paths: Sequence[Path], first: int) -> Sequence[Path]:
    """Leave out the segments that end before a sequence, which is where the next one begins."""
    over = sum(1 for _, following in pairwise(paths) if _reached_before(following) <= first)
    return paths[over:]


def _reached_before(segment: Path) -> int:
    head = next(read_entries(segment))
    assert isinstance(head, Session)
    return head.reached
