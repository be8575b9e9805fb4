"""What a host has to tell the control store, told beside the batches: a store that is away stops none of them.

Batches are told one after the other, each until the store takes it, by a thread of its own. What is not told when a
host ends is told by the next one: the journal of the stream has it. Of a stream's health only the newest is told.
"""

import logging
import threading
from collections import defaultdict, deque
from collections.abc import Callable

from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.host.control import BatchRecord, Control, StreamHealth
from penstock.pipelines.host.work import working_on

log = logging.getLogger(__name__)

AGAIN_SECONDS = 0.5


class Telling:
    """Tells the store what comes to pass in a host. Safe to use from several threads."""

    def __init__(self, control: Control, again_seconds: float = AGAIN_SECONDS) -> None:
        self._control = control
        self._again_seconds = again_seconds
        self._batches: dict[str, deque[BatchRecord]] = defaultdict(deque)
        self._newest: dict[str, int] = {}
        self._health: dict[str, StreamHealth] = {}
        self._changed = threading.Condition()
        self._one_at_a_time = threading.Lock()
        self._trouble = ""
        self._teller: threading.Thread | None = None

    def begin(self, stream: str) -> int:
        """Ask which batch of a stream the store knows as its newest; -1 for none. Younger ones are to be told."""
        last = self._control.last_batch(stream)
        known = -1 if last is None else last.batch_id
        with self._changed:
            waiting = self._batches[stream]
            self._newest[stream] = max(known, waiting[-1].batch_id) if waiting else known
            return self._newest[stream]

    def batch(self, record: BatchRecord) -> None:
        """Tell of a batch, unless that was done; does not wait."""
        with self._changed:
            if record.batch_id > self._newest.get(record.stream, -1):
                self._newest[record.stream] = record.batch_id
                self._batches[record.stream].append(record)
                self._wake()

    def health(self, told: StreamHealth) -> None:
        """Tell how a stream is doing: at once, or as soon as the store takes it."""
        with self._changed:
            self._health[told.stream] = told
        self._try(lambda: self._tell_health(told.stream))
        with self._changed:
            if self._health:
                self._wake()

    def settle(self, stream: str, seconds: float) -> bool:
        """Wait until all batches of a stream are told, for so long at most; returns whether they are."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._batches[stream], seconds)

    def _wake(self) -> None:
        if self._teller is None:
            self._teller = threading.Thread(target=self._tell, name="telling", daemon=True)
            self._teller.start()
        self._changed.notify_all()

    def _tell(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(self._anything)
                streams = {*self._health, *(name for name, waiting in self._batches.items() if waiting)}
            in_vain = [stream for stream in streams if not self._tell_of(stream)]
            if in_vain:
                with self._changed:
                    self._changed.wait(self._again_seconds)

    def _tell_of(self, stream: str) -> bool:
        well = self._try(lambda: self._tell_health(stream))
        while well and (waiting := self._batches.get(stream)):
            well = self._try(lambda record=waiting[0]: self._tell_batch(record))  # type: ignore[misc]
        return well

    def _anything(self) -> bool:
        return bool(self._health) or any(self._batches.values())

    def _tell_batch(self, record: BatchRecord) -> None:
        try:
            self._control.record_batch(record)
        except (TypeError, ValueError):  # the record itself is wrong: told again it is no better
            with working_on(record.stream, record.batch_id):
                log.exception("the control store cannot hold this batch; its tables do")
        with self._changed:
            self._batches[record.stream].popleft()
            self._changed.notify_all()

    def _tell_health(self, stream: str) -> None:
        with self._one_at_a_time:
            with self._changed:
                told = self._health.get(stream)
            if told is None:
                return
            self._control.report_health(told)
            with self._changed:
                if self._health.get(stream) is told:
                    del self._health[stream]

    def _try(self, tell: Callable[[], None]) -> bool:
        """Do it; where the store does not answer say so once, and return False."""
        try:
            tell()
        except Exception as problem:
            if str(problem) != self._trouble:
                log.exception("told the control store in vain, and tries again until it hears")
            self._trouble = str(problem)
            return False
        self._trouble = ""
        return True


def batch_record(stream: str, outcome: Outcome) -> BatchRecord:
    """What the control store keeps of a batch."""
    watermark = outcome.watermark.value
    return BatchRecord(
        stream=stream,
        batch_id=outcome.batch_id,
        epoch=outcome.epoch,
        kind=outcome.kind,
        clock_ms=outcome.clock,
        watermark_ms=watermark if outcome.watermark.known else None,
        accounts=outcome.accounts,
        panes=outcome.panes,
        rows=sum(outcome.panes.values()) + outcome.archived,
        lag_records=outcome.lag_records,
        durations_ms=outcome.durations_ms,
        state_rows=outcome.state_rows,
        state=outcome.state_sizes,
        given={place: change.given for place, change in outcome.changes.items() if change.given is not None},
    )
