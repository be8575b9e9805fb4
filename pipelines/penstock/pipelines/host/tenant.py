"""One stream in a host: begun, steered, put away, and tried again when it failed.

A stream is of this host until it has stopped: one that cannot be stopped has lost its right to write, and is asked
again. Who has the lease is the store's to say; whatever fails here is this stream's own, and no other's.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.batch.right import Right
from penstock.pipelines.errors import FencedError
from penstock.pipelines.host.control import Control, Desired, DesiredState, Lease, StreamHealth
from penstock.pipelines.host.leases import Clock, Leases
from penstock.pipelines.host.retry import Failures
from penstock.pipelines.host.running import Make, Parked, Place, Running
from penstock.pipelines.host.telling import Telling, batch_record
from penstock.pipelines.host.work import working_on

log = logging.getLogger(__name__)

FAILED = ("failed", "parked")
SETTLE_SECONDS = 2.0
"""How long a stream that is put away waits for the store to know its batches; the next start tells the rest."""


@dataclass(frozen=True)
class Desk:
    """What the streams of a host share."""

    control: Control
    leases: Leases
    telling: Telling
    make: Make
    clock: Clock
    written: Callable[[str], str]
    park_after: int


class Tenant:
    """A stream, and what this host knows of it. Calls may come from several threads; they are done in turn."""

    def __init__(self, stream: str, desk: Desk) -> None:
        self.stream = stream
        self._desk = desk
        self._place: Place | None = None
        self._failures = Failures()
        self._stuck = Failures()
        self._parked: Parked | None = None
        self._waits = False
        self._health: StreamHealth | None = None
        self._epoch = 0
        self._failed_wish = 0
        self._in_turn = threading.Lock()

    @property
    def is_here(self) -> bool:
        """Whether this host has the stream."""
        return self._place is not None

    @property
    def failed(self) -> bool:
        """Whether the last that this host said of the stream is that it failed."""
        return self._health is not None and self._health.state in FAILED

    def look(self, wish: DesiredState | None) -> None:
        """Compare what the stream is with what it is to be, and act on the difference."""
        with self._in_turn, working_on(self.stream):
            if self._stuck.count:
                self._try_again_to_stop(wish)
            else:
                self._look_after()
            if self._stuck.count:
                return
            if self._place is not None:
                self._follow(self._place, wish)
            elif wish is not None and wish.held:
                self._begin(wish)
            elif self.failed:
                self._rest("stopped" if wish is None else wish.desired.value)

    def leave(self, state: str, reason: str) -> None:
        """Finish the batch at work, and let go of the stream; nothing where it is not here."""
        with self._in_turn, working_on(self.stream):
            if self._place is not None:
                self._leave(self._place, state, reason)

    def _look_after(self) -> None:
        place = self._place
        if place is None:
            return
        failure = place.stream.failure()
        if failure is None and not self._desk.leases.holds(place.lease):
            failure = FencedError(self.stream, place.lease.epoch)
        if failure is not None:
            self._give_up(place, failure)

    def _follow(self, place: Place, wish: DesiredState | None) -> None:
        """Bring about a wish for a stream that is here."""
        if wish is None:
            self._leave(place, "stopped", "it is no longer asked for")
        elif not wish.held:
            self._leave(place, wish.desired.value, "", now=wish.desired is Desired.STOPPED)
        elif wish.revision == place.wish.revision:
            return
        elif wish.desired is place.wish.desired or wish.revision > place.wish.revision + 1:
            if self._leave(place, "stopped", "it is started again"):
                self._begin(wish)
        else:
            self._change(place, wish)

    def _try_again_to_stop(self, wish: DesiredState | None) -> None:
        """Ask once more a stream that did not stop."""
        if self._place is None or self._desk.clock() < self._stuck.retry_at_ms:
            return
        if self._put_away(self._place) and not (wish is not None and wish.held):
            self._say("stopped" if wish is None else wish.desired.value, "")

    def _change(self, place: Place, wish: DesiredState) -> None:
        """Pause a stream, or have it read again."""
        try:
            place.stream.pause() if wish.desired is Desired.PAUSED else place.stream.resume()
        except Exception as problem:  # noqa: BLE001  # one stream's failure, whatever it is, is its own
            self._give_up(place, problem)
        else:
            place.wish = wish
            self._say(wish.desired.value, "", place.began_ms)

    def _rest(self, state: str) -> None:
        """Know that a stream that failed is not to run any more: that it failed is no trouble then."""
        self._parked, self._failures = None, Failures()
        self._say(state, "")

    def _begin(self, wish: DesiredState) -> None:
        if self._parked is not None:
            if self._parked == Parked(wish.revision, self._desk.written(self.stream)):
                return
            # Somebody asked again, or what it is written in has changed.
            self._parked, self._failures, self._health = None, Failures(), None
        if self._failures.count and wish.revision != self._failed_wish:
            self._failures = Failures()  # somebody asked again, and need not wait
        if self._desk.clock() < self._failures.retry_at_ms:
            return
        lease = self._desk.leases.acquire(self.stream)
        if lease is None:
            self._wait()
            return
        self._waits, self._epoch = False, lease.epoch
        self._start(wish, lease)

    def _wait(self) -> None:
        """Say once that another host has the stream. Its health is that host's to report."""
        if not self._waits:
            self._waits, self._health = True, None
            holder = self._desk.control.holder(self.stream)
            log.info("waits: %s has it", holder.holder if holder else "another host")

    def _start(self, wish: DesiredState, lease: Lease) -> None:
        right = Right(self.stream, lease.epoch, lambda: self._desk.leases.holds(lease))
        running: Running | None = None
        began_ms = (
            self._desk.clock()
        )  # before what it is written in is read: what is changed from here on is newer
        written, known = self._desk.written(self.stream), self._desk.telling.begin(self.stream)
        try:
            running = self._desk.make(self.stream, right, self._told)
            for outcome in running.decided(known):  # which an earlier host could not tell any more
                self._told(outcome)
            running.start(reading=wish.desired is Desired.RUNNING)
        except Exception as problem:  # noqa: BLE001  # one stream's failure, whatever it is, is its own
            at, held = running.at() if running else "", right.holds()
            self._desk.leases.release(lease)
            self._failed(Parked(wish.revision, written), problem, at, held=held)
        else:
            self._place = Place(lease, running, wish, written, began_ms)
            self._say(wish.desired.value, "", began_ms)

    def _leave(self, place: Place, state: str, reason: str, *, now: bool = False) -> bool:
        if left := self._put_away(place, now=now):
            self._say(state, reason)
        return left

    def _give_up(self, place: Place, problem: BaseException) -> None:
        at, held = place.stream.at(), self._desk.leases.holds(place.lease)
        if self._put_away(place):
            self._failed(Parked(place.wish.revision, place.written), problem, at, held=held)
        else:
            log.error("and before that it had failed: %s", problem, exc_info=problem)

    def _put_away(self, place: Place, *, now: bool = False) -> bool:
        """Stop what runs, and give its lease back; what does not stop stays here, without a right to write."""
        try:
            place.stream.stop() if now else place.stream.drain()
        except Exception as problem:
            self._stuck = self._stuck.again(self._desk.clock())
            log.exception("could not be stopped; it is tried again, and writes nothing meanwhile")
            self._say("failed", f"it could not be stopped: {_in_words(problem)}")
            return False
        else:
            self._place, self._stuck = None, Failures()
            return True
        finally:
            self._desk.telling.settle(self.stream, SETTLE_SECONDS)
            self._desk.leases.release(place.lease)

    def _failed(self, began: Parked, problem: BaseException, at: str, *, held: bool) -> None:
        if isinstance(problem, FencedError) or not held:
            self._lost(problem)
            return
        self._failures, self._failed_wish = self._failures.again(self._desk.clock(), problem), began.revision
        log.error("failed%s: %s", f" at {at}" if at else "", problem, exc_info=problem)
        what = _in_words(problem) + (f" ({at})" if at else "")
        if self._failures.is_enough(self._desk.park_after):
            self._parked = began
            tries = "" if self._failures.hopeless else f"; given up after {self._failures.count} tries"
            again = f"`penstock stream start {self.stream}` tries again, and so does a change of its files"
            self._say("parked", f"{what.rstrip('.')}{tries}. {again}")
        else:
            self._say("failed", what)

    def _lost(self, problem: BaseException) -> None:
        """Know that the stream is, or may be, another host's: what becomes of it is that one's to say."""
        fenced = isinstance(problem, FencedError)
        told = str(problem) if fenced else f"its lease was lost, and then it failed: {_in_words(problem)}"
        log.warning("%s", told, exc_info=None if fenced else problem)
        self._health = None
        self._desk.control.let_go(StreamHealth(self.stream, "lost", told, self._desk.clock()))

    def _told(self, outcome: Outcome) -> None:
        self._desk.telling.batch(batch_record(self.stream, outcome))

    def _say(self, state: str, reason: str, since_ms: int | None = None) -> None:
        """Report health, where it is news; a failure always is, for each is counted."""
        before = self._health
        known = before is not None and (before.state, before.reason) == (state, reason)
        if known and state != "failed":
            return
        if not known:
            log.info("is %s%s", state, f": {reason}" if reason else "")
        at_ms = self._desk.clock() if since_ms is None else since_ms
        self._health = StreamHealth(self.stream, state, reason, at_ms, self._epoch)
        self._desk.telling.health(self._health)


def _in_words(problem: BaseException) -> str:
    return f"{type(problem).__name__}: {problem}".split("\n\n")[0]
