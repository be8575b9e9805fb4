"""Runs the batches of a live stream that are due by the clock, while no records arrive."""

import threading

from penstock.core.clock import Clock
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.spark.unread_partitions import UnreadPartitions

MAX_TICKER_WAIT_S = 1.0
"""The longest sleep of the ticker; a batch may set a timer meanwhile."""


class Ticker:
    """A thread that runs ticks until `stopping` is set. A tick that fails sets it too, and ends the stream."""

    def __init__(
        self,
        stream: str,
        engine: BatchEngine,
        unread: UnreadPartitions,
        clock: Clock,
        batch_lock: threading.Lock,
        stopping: threading.Event,
    ) -> None:
        self._engine = engine
        self._unread = unread
        self._clock = clock
        self._batch_lock = batch_lock
        self._stopping = stopping
        self._thread = threading.Thread(target=self._run, name=f"ticker of {stream}", daemon=True)
        self.failure: BaseException | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def join(self) -> None:
        """Wait until the thread has ended, if it was started."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._tick_if_due()
            except Exception as problem:  # noqa: BLE001  # any error ends the stream, which returns it
                self.failure = problem
                self._stopping.set()
                return
            wait_ms = min(max(self._engine.next_due_clock() - self._clock(), 0), MAX_TICKER_WAIT_S * 1000)
            self._stopping.wait(max(wait_ms, 5) / 1000)

    def _tick_if_due(self) -> None:
        if self._engine.next_due_clock() > self._clock():
            return
        with self._batch_lock:
            now_ms = self._clock()
            if not self._stopping.is_set() and self._engine.next_due_clock() <= now_ms:
                unread = self._unread.find_for_tick(self._engine.last_outcome, now_ms)
                self._engine.run_tick(now_ms, unread_partitions=unread)
