"""Runs the archive of a topic in a host: reads records and archives them in batches."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.clock import Clock
from penstock.core.kafka_client import BrokerAccess
from penstock.engine.archive.topic_archive import TopicArchive
from penstock.engine.archive.topic_reader import TopicReader, fetch_topic_id
from penstock.engine.batch.journal import read_retained_outcomes
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.errors import ArchiveError
from penstock.engine.storage import StoragePath
from penstock.engine.tables.table_owner import TableClaim

_POLL_TIMEOUT_S = 0.5


@dataclass(frozen=True)
class ArchiveConfig:
    """Where an archive reads and writes, and how large its batches are.

    A batch is archived `batch_interval_ms` after its first record, or at its maximum of records or bytes. So a
    quiet topic has no small files, and a busy one needs bounded memory.
    """

    broker: BrokerAccess
    directory: Path
    warehouse: StoragePath
    compacted: bool = False
    """Whether the topic is compacted."""
    batch_interval_ms: int = 10_000
    max_batch_records: int = 200_000
    max_batch_bytes: int = 67_108_864
    claim: TableClaim | None = None
    """The claim on its tables."""


class ArchiveStream:
    """The archive of a topic, which runs until it is stopped or fails. It is started once."""

    def __init__(
        self,
        topic: str,
        config: ArchiveConfig,
        fence: WriteFence,
        report_outcome: Callable[[BatchOutcome], None],
        clock: Clock,
    ) -> None:
        self._topic = topic
        self._config = config
        self._fence = fence
        self._report_outcome = report_outcome
        self._clock = clock
        self._batch_started_ms: int | None = None
        self._stopping = threading.Event()
        self._paused = threading.Event()
        self._idle = threading.Event()
        self._discards_pending = False
        self._thread = threading.Thread(target=self._run_loop, name=f"archive of {topic}", daemon=True)
        self._failure: BaseException | None = None

    def read_outcomes_after(self, after: int) -> Sequence[BatchOutcome]:
        """Return the retained outcomes after this one."""
        return read_retained_outcomes(self._config.directory / "journal", after)

    def start(self, *, reading: bool = True) -> None:
        """Finish what the last run left, and start to read, unless it starts paused."""
        config = self._config
        self._topic_id = fetch_topic_id(config.broker.client_config, self._topic)
        self._archive = TopicArchive(
            self._topic,
            self._topic_id,
            config.directory,
            config.warehouse,
            self._fence,
            self._report_outcome,
            config.claim,
        )
        self._archive.resume()
        self._reader = TopicReader(
            config.broker.client_config, self._topic, self._archive.end_offsets, config.compacted
        )
        if not reading:
            self._paused.set()
        self._thread.start()

    def failure(self) -> BaseException | None:
        """Return why the archive no longer runs; None while it runs."""
        return self._failure

    @property
    def last_outcome(self) -> BatchOutcome | None:
        """The newest committed outcome."""
        return self._archive.last_outcome

    def describe_current_batch(self) -> str:
        """Describe the batch in progress; its records are known when it is archived."""
        last = self._archive.last_outcome if hasattr(self, "_archive") else None
        return f"batch {0 if last is None else last.batch_id + 1}"

    def pause(self) -> None:
        """Archive what was read, and read no more."""
        self._idle.clear()
        self._paused.set()
        while self._thread.is_alive() and not self._idle.wait(_POLL_TIMEOUT_S):
            pass

    def resume(self) -> None:
        """Read again."""
        self._paused.clear()

    def stop(self) -> None:
        """Stop, and leave what was read to the next start."""
        self._discards_pending = True
        self.drain()

    def drain(self) -> None:
        """Archive what was read, and stop."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run_loop(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._paused.is_set():
                    self._wait_paused()
                    continue
                self._reader.poll(_POLL_TIMEOUT_S, self._clock())
                if self._is_due():
                    self._archive_batch()
            if self._reader.slices and not self._discards_pending:
                self._archive_batch()
        except Exception as error:  # noqa: BLE001  # any error ends the archive; the host polls for it
            self._failure = error
        finally:
            self._reader.close()

    def _wait_paused(self) -> None:
        """Wait without reading; what was read before is archived first."""
        if self._reader.slices:
            self._archive_batch()
        self._idle.set()
        self._stopping.wait(_POLL_TIMEOUT_S)

    def _is_due(self) -> bool:
        reader, now_ms = self._reader, self._clock()
        if not reader.slices:
            self._batch_started_ms = None
            return False
        self._batch_started_ms = now_ms if self._batch_started_ms is None else self._batch_started_ms
        is_full = (
            reader.record_count >= self._config.max_batch_records
            or reader.byte_count >= self._config.max_batch_bytes
        )
        return is_full or now_ms - self._batch_started_ms >= self._config.batch_interval_ms

    def _archive_batch(self) -> None:
        if fetch_topic_id(self._config.broker.client_config, self._topic) != self._topic_id:
            raise ArchiveError(
                f"topic {self._topic} was deleted and created again while it was archived: "
                "the records read since are not archived"
            )
        self._archive.archive_batch(self._reader.slices, self._clock(), self._reader.count_lag())
        self._reader.start_batch()
        self._batch_started_ms = None
