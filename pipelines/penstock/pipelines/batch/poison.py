"""Records that are set aside by their addresses: those that break one's own code, and those that were sent again.

What breaks one's own code is found by halving, and counted. A record that was sent again from quarantine is in its
topic twice, and both are good once its contract is looser: a stream that comes to the first of them leaves it out.

Nothing of a batch is seen from outside before it is decided, so it may be tried as often as it takes. Which records
are set aside is written down beside the intent: a batch that is run again sets the same ones aside. A record is
blamed only where it fails alone, and its batch works without it; whatever else goes wrong fails the batch.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar, runtime_checkable

from penstock.pipelines.batch.intent import Intent, Range
from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.batch.reading import Reading
from penstock.pipelines.errors import PoisonError

log = logging.getLogger(__name__)
Computed = TypeVar("Computed")
Spans = tuple[Range, ...]


@dataclass(frozen=True)
class Poisoned:
    """A record that is set aside, and why: in what one's own code said, or where it was sent again."""

    topic: str
    partition: int
    offset: int
    reason: str
    kind: Literal["breaks_code", "sent_again"] = "breaks_code"

    @property
    def said(self) -> str:
        """Why, as the quarantine has it."""
        return f"{self.kind}: {self.reason}"


SentAgain = Callable[[Spans], Sequence[Poisoned]]
"""Says which records of some ranges were sent again under other addresses."""


def nothing_sent_again(_spans: Spans) -> Sequence[Poisoned]:
    """Know of no record that was sent again."""
    return ()


@runtime_checkable
class Divisible(Reading, Protocol):
    """Records that can be tried in parts."""

    def broke(self, problem: BaseException) -> str:
        """What one's own code said when it broke; empty where the problem is another."""

    def only(self, spans: Spans) -> "Divisible":
        """The records of these ranges alone."""

    def setting_aside(self, poisoned: Sequence[Poisoned]) -> "Divisible":
        """The same records, of which these are no good."""


@dataclass(frozen=True)
class Guard:
    """Tries batches. At most `limit` records are set aside among the batches that the journal keeps; 0 for none."""

    journal: Journal
    stream: str
    limit: int = 0
    sent_again: SentAgain = nothing_sent_again

    def run(
        self,
        intent: Intent,
        reading: Reading,
        compute: Callable[[Reading], Computed],
        discard: Callable[[Computed], None] = lambda _: None,
    ) -> Computed:
        """Compute a batch, without the records that break it where there are such. Trials are discarded."""
        known = self._known(intent.batch_id)
        if known and isinstance(reading, Divisible):
            return compute(reading.setting_aside(known))
        again = list(self.sent_again(intent.ranges))
        if again and isinstance(reading, Divisible):
            reading = reading.setting_aside(again)
        try:
            computed = compute(reading)
            self._write(intent.batch_id, again)
        except Exception as problem:
            if not self.limit or not isinstance(reading, Divisible) or not reading.broke(problem):
                raise
            too_many = PoisonError(self.stream, intent.in_words, self.limit, reading.broke(problem))
            room = self.limit - self.journal.aside_before(intent.batch_id)
            trial = _Trial(reading, lambda part: discard(compute(part)), room, too_many)
            found = trial.search(intent.ranges)
            if not found:
                raise  # no record fails alone
            computed = compute(reading.setting_aside([*again, *found]))
            self._write(intent.batch_id, [*again, *found])
            for each in found:
                log.warning(
                    "%s/%d offset %d breaks its code and is set aside: %s",
                    each.topic,
                    each.partition,
                    each.offset,
                    each.reason,
                )
        return computed

    def _write(self, batch_id: int, aside: Sequence[Poisoned]) -> None:
        if aside:
            self.journal.set_aside(batch_id, [vars(each) for each in aside])

    def _known(self, batch_id: int) -> list[Poisoned]:
        return [Poisoned(**each) for each in self.journal.aside(batch_id)]


class _Trial:
    """The search through one batch. Gives up once more records are found than there is room for."""

    def __init__(
        self,
        reading: Divisible,
        compute: Callable[[Reading], object],
        room: int,
        too_many: PoisonError,
    ) -> None:
        self._reading = reading
        self._compute = compute
        self._room = room
        self._too_many = too_many

    def search(self, spans: Spans) -> list[Poisoned]:
        """Find the records that fail alone, given ranges that fail together."""
        found: list[Poisoned] = []
        for each in self._search(tuple(span for span in spans if span.end > span.start)):
            found.append(each)
            if len(found) > self._room:
                raise self._too_many
        return found

    def _search(self, spans: Spans) -> Iterator[Poisoned]:
        for half in halves(spans):
            if reason := self._reason(half):
                if _count(half) == 1:
                    (span,) = half
                    yield Poisoned(span.topic, span.partition, span.start, reason)
                else:
                    yield from self._search(half)

    def _reason(self, spans: Spans) -> str:
        """Why one's own code fails over these records; empty where it does not."""
        part = self._reading.only(spans)
        try:
            self._compute(part)
        except Exception as problem:
            if reason := part.broke(problem):
                return reason
            raise
        return ""


def halves(spans: Spans) -> list[Spans]:
    """Two parts of about the same length; one record is its own half."""
    total = _count(spans)
    if total <= 1:
        return [spans] if total else []
    first, rest, left = [], [], total // 2
    for span in spans:
        taken = min(span.end - span.start, left)
        left -= taken
        cut = span.start + taken
        first += [replace(span, end=cut)] if taken else []
        rest += [replace(span, start=cut)] if cut < span.end else []
    return [tuple(first), tuple(rest)]


def _count(spans: Spans) -> int:
    return sum(span.end - span.start for span in spans)
