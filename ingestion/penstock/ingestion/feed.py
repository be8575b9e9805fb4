"""Feeding a topic from a source, with progress, until it ends, is stopped, or has sent enough."""

from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event

from penstock.ingestion.clients import ClientSettings
from penstock.ingestion.contracts import Contract
from penstock.ingestion.ledger import Clock, Ledger
from penstock.ingestion.producer import BY_KEY, LedgeredProducer, Waiting, Window, format_of
from penstock.ingestion.producer.batch import Batch
from penstock.ingestion.producer.recovery import Replay
from penstock.ingestion.registry import Registry
from penstock.ingestion.sources.source import Source, replay_of, rest_of

_PAUSE_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a feed is. `heard` is what the client last heard of the broker while it waits, else empty."""

    sent: int
    acknowledged: int
    dead_letters: int
    milliseconds: int
    heard: str = ""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a feed did; `complete` says that nothing was left in flight when it ended."""

    producer: str
    first: int
    reached: int
    dead_letters: int
    milliseconds: int
    complete: bool

    @property
    def acknowledged(self) -> int:
        """Records of this run that are delivered and in the ledger."""
        return self.reached - self.first


@dataclass(frozen=True, slots=True)
class Limits:
    """When to end: after `count` records of this run, or once the producer has reached sequence `until`.

    After the end, or a stop, the feed waits `finish_ms` for what is in flight.
    """

    count: int | None = None
    until: int | None = None
    finish_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class Feed:
    """One source into one topic, under the name of a producer; its ledger is in `ledger_directory`.

    `keep_ms` is how long the ledger keeps addresses; for ever without it.
    """

    source: Source
    contract: Contract
    bootstrap: str
    ledger_directory: Path
    clock: Clock
    registry: Registry | None = None
    route: str = BY_KEY
    window: Window | None = None
    client: ClientSettings = field(default_factory=dict)
    keep_ms: int | None = None

    def run(
        self, stop: Event, progress: Callable[[Progress], None] = lambda _: None, limits: Limits | None = None
    ) -> Summary:
        """Send until the source ends, a limit is reached, or `stop` is set; then finish what is in flight.

        Resumes where an earlier run of the same producer stopped, however it stopped.
        """
        ledger = Ledger(self.ledger_directory, self.clock, keep_ms=self.keep_ms)
        try:
            return _Run(self, ledger, stop, progress, limits or Limits()).run()
        finally:
            ledger.close(in_order=False)


class _StoppedWaitingError(Exception):
    """The feed was stopped while the producer waited for room; what was not sent yet stays with the source."""


class _Run:
    def __init__(
        self, feed: Feed, ledger: Ledger, stop: Event, progress: Callable[[Progress], None], limits: Limits
    ) -> None:
        self._feed = feed
        self._ledger = ledger
        self._stop = stop
        self._progress = progress
        self._limits = limits
        self._checker = format_of(feed.contract, feed.registry).checker
        self._dead = 0
        self._first = 0
        self._finish_by: int | None = None
        self._begun = feed.clock()
        self._producer = LedgeredProducer(
            feed.bootstrap,
            feed.contract.topic,
            ledger,
            source=feed.source.description,
            dead_letters=feed.contract.dead_letters,
            route=feed.route,
            window=feed.window,
            on_wait=self._waiting,
            client=feed.client,
        )

    def run(self) -> Summary:
        """Carry out the feed."""
        try:
            complete = self._resume() and self._deliver()
        finally:
            self._producer.close()
        return Summary(
            self._ledger.name, self._first, self._producer.reached, self._dead, self._elapsed(), complete
        )

    def _resume(self) -> bool:
        try:
            self._first = self._producer.resume(self._replay())
        except _StoppedWaitingError:
            self._first = self._producer.reached
            return False
        return True

    def _deliver(self) -> bool:
        with closing(self._batches()) as batches:
            self._send_all(batches)
            return self._finish()

    def _send_all(self, batches: Iterator[Batch]) -> None:
        try:
            for batch in batches:
                if not len(batch):
                    self._producer.serve(_PAUSE_SECONDS)
                else:
                    self._send(batch)
                self._tell()
                if self._stop.is_set() or self._producer.sent >= self._end():
                    return
        except _StoppedWaitingError:
            return

    def _batches(self) -> Generator[Batch]:
        last = self._ledger.state.last
        if self._producer.sent >= self._end():
            return
        if last is None or last.position is None:
            yield from self._feed.source.read(None)
        elif last.after is not None:
            yield from rest_of(self._feed.source, last.after, 0)
        else:
            yield from rest_of(self._feed.source, last.position, last.skip + last.count)

    def _replay(self) -> Replay | None:
        again = replay_of(self._feed.source)
        if again is None:
            return None
        return lambda position, skip, count: [
            self._checker.check(batch) for batch in again(position, skip, count)
        ]

    def _send(self, batch: Batch) -> None:
        room = self._end() - self._producer.sent
        checked = self._checker.check(batch if len(batch) <= room else batch.part(0, int(room)))
        self._dead += len(checked.broken)
        self._producer.send(checked)

    def _end(self) -> float:
        ends = [float("inf") if self._limits.until is None else self._limits.until]
        if self._limits.count is not None:
            ends.append(self._first + self._limits.count)
        return min(ends)

    def _finish(self) -> bool:
        self._finish_by = self._feed.clock() + self._limits.finish_ms
        try:
            complete = self._producer.flush(self._waited_enough)
        except _StoppedWaitingError:
            complete = False
        self._tell()
        return complete

    def _waiting(self, waiting: Waiting) -> None:
        self._tell(waiting.heard or "the broker takes no more for now")
        if self._waited_enough():
            raise _StoppedWaitingError

    def _waited_enough(self) -> bool:
        if self._finish_by is None:
            return self._stop.is_set()
        return self._feed.clock() > self._finish_by

    def _elapsed(self) -> int:
        return self._feed.clock() - self._begun

    def _tell(self, heard: str = "") -> None:
        acknowledged = self._producer.reached - self._first
        self._feed.source.acknowledged(acknowledged)
        sent = self._producer.sent - self._first
        self._progress(Progress(sent, acknowledged, self._dead, self._elapsed(), heard))
