"""The delivery ledger of one producer: a folder of segments, with one writer at a time."""

import fcntl
import os
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.ingestion.errors import LedgerError
from penstock.ingestion.ledger.addresses import Runs, pack_lanes
from penstock.ingestion.ledger.entries import Abandoned, Acknowledged, Closed, Entry, Intent, Session
from penstock.ingestion.ledger.journal import Journal, cut_torn_end, read_entries
from penstock.ingestion.ledger.packing import pack
from penstock.ingestion.ledger.reading import LedgerState, segments, state_of

Clock = Callable[[], int]
SEGMENT_BYTES = 8_388_608


class Ledger:
    """Writes a producer's ledger.

    Promises that an entry of `acknowledge` is on the disk when the call returns, and that no second process
    writes the same ledger meanwhile. It does not promise that what is not in it is not in the topic: that is
    what the intents are for.
    Addresses are kept for `keep_ms`, as long as the topic keeps its records; for ever without it.
    """

    def __init__(
        self, directory: Path, clock: Clock, segment_bytes: int = SEGMENT_BYTES, keep_ms: int | None = None
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._clock = clock
        self._segment_bytes = segment_bytes
        self._keep_ms = keep_ms
        self._lock: int | None = _lock(directory)
        try:
            self.state, self._journal = _opened(directory)
        except BaseException:
            os.close(self._lock)
            raise

    @property
    def name(self) -> str:
        """The producer's name."""
        return self.directory.name

    def begin(
        self, targets: Sequence[tuple[str, int]], ends: Sequence[int], source: str, route: str = ""
    ) -> None:
        """Note the targets of a new session and their last offsets before anything is sent."""
        state = self.state
        now = self._clock()
        self._write(Session(list(targets), list(ends), state.reached, source, state.last, now, route))
        self._journal.sync()

    def intend(self, first: int, count: int, position: Any, skip: int = 0, after: Any = None) -> None:
        """Note that records are about to be sent; this survives a kill, not a power cut."""
        if self._journal.size > self._segment_bytes:
            self._next_segment()
        self._write(Intent(first, count, position, skip, self._clock(), after))

    def acknowledge(self, chunks: Sequence[tuple[int, Sequence[int], Runs]]) -> None:
        """Note the addresses of consecutive records, given as first sequence, targets and runs; then sync."""
        for first, lanes, runs in chunks:
            if first != self.state.reached:
                raise LedgerError(f"{self.directory}: {first} was acknowledged before {self.state.reached}")
            self._write(Acknowledged(first, len(lanes), pack_lanes(lanes), runs, self._clock()))
        self._journal.sync()

    def abandon(self, first: int, count: int) -> None:
        """Note that nobody can tell, or send again, these records."""
        self._write(Abandoned(first, count, self._clock()))
        self._journal.sync()

    def close(self, *, in_order: bool) -> None:
        """Close the file and let go of the lock; `in_order` says that nothing is in flight. Twice is no harm."""
        if self._lock is None:
            return
        if in_order:
            self._write(Closed(self._clock()))
        self._journal.close()
        os.close(self._lock)
        self._lock = None

    def _write(self, entry: Entry) -> None:
        self._journal.append(entry)
        self.state.follow(entry)

    def _next_segment(self) -> None:
        self._journal.close()
        over = self._journal.path
        path = _segment(self.directory, _number(over) + 1)
        state, now = self.state, self._clock()
        # Under another name until it is whole: a segment without its head would forget what was reached.
        unfinished = path.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        head = Journal(unfinished)
        session = Session(
            state.targets, state.ends, state.reached, state.source, state.last, now, state.route
        )
        head.append(session, *state.intents)
        head.close()
        head.path.rename(path)
        self._journal = Journal(path)
        pack(over)
        self._prune(now)

    def _prune(self, now: int) -> None:
        """Remove the segments that ended, which is when the next one began, before what is to be kept."""
        if self._keep_ms is None:
            return
        for path, following in pairwise(segments(self.directory)):
            if _begun(following) >= now - self._keep_ms:
                return
            path.unlink()


def _opened(directory: Path) -> tuple[LedgerState, Journal]:
    paths = segments(directory)
    if paths:
        cut_torn_end(paths[-1])
    return state_of(paths), Journal(paths[-1] if paths else _segment(directory, 0))


def _segment(directory: Path, number: int) -> Path:
    return directory / f"{number:08d}.ledger"


def _number(segment: Path) -> int:
    return int(segment.stem)


def _begun(segment: Path) -> int:
    """Return when a segment was begun: its first entry says so."""
    return next(entry.at_ms for entry in read_entries(segment))


def _lock(directory: Path) -> int:
    handle = os.open(directory / "lock", os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise LedgerError(
            f"another process writes the ledger in {directory}; wait for it, stop it, or use another name"
        ) from error
    return handle
