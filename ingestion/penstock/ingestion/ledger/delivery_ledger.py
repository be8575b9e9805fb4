"""The delivery ledger of one producer: a folder of segments with one writer at a time."""

import fcntl
import os
import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.core.clock import Clock
from penstock.core.file_sync import sync_files, sync_folder
from penstock.core.files import atomic_path
from penstock.core.kafka_topics import TopicIds
from penstock.ingestion.errors import LedgerError
from penstock.ingestion.ledger.addresses import OffsetRunsByTarget, pack_target_ids
from penstock.ingestion.ledger.compaction import compact_segment
from penstock.ingestion.ledger.entries import (
    Abandonment,
    Acknowledgement,
    DeliveryIntent,
    LedgerEntry,
    ProducerClosing,
    ProducerSession,
)
from penstock.ingestion.ledger.journal import DeliveryJournal, read_entries, truncate_torn_entry
from penstock.ingestion.ledger.reader import DeliveryLedgerState, list_segments, replay_segments

NO_TOPIC_IDS = TopicIds("", {})
MAX_SEGMENT_BYTES = 8_388_608


class DeliveryLedger:
    """Writes the ledger of a producer.

    Guarantees that an entry is on disk when the call that records it returns, and that no second process writes the
    same ledger. Not guaranteed: that a record without an acknowledgement is not in the topic. Intents
    exist to resolve that. Addresses are retained for `retention_ms`, or forever if it is None.
    """

    def __init__(
        self,
        directory: Path,
        clock: Clock,
        max_segment_bytes: int = MAX_SEGMENT_BYTES,
        retention_ms: int | None = None,
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._clock = clock
        self._max_segment_bytes = max_segment_bytes
        self._retention_ms = retention_ms
        self._lock_handle: int | None = _lock_directory(directory)
        try:
            self.state, self._journal = _open_journal(directory)
        except BaseException:
            os.close(self._lock_handle)
            raise

    @property
    def producer_name(self) -> str:
        """The name of the producer."""
        return self.directory.name

    def start_session(
        self,
        targets: Sequence[tuple[str, int]],
        last_offsets: Sequence[int],
        source: str,
        partitioner_name: str = "",
        topic_ids: TopicIds = NO_TOPIC_IDS,
    ) -> None:
        """Record the targets of a new session and their last offsets, before anything is sent."""
        state = self.state
        now = self._clock()
        self._append_entry(
            ProducerSession(
                list(targets),
                list(last_offsets),
                state.acknowledged_until,
                source,
                state.last_intent,
                now,
                partitioner_name,
                dict(topic_ids.by_topic),
                topic_ids.cluster_id,
            )
        )
        self._journal.sync()

    def select_topic(self, topic: str, topic_id: str) -> bool:
        """Continue with the ledger of this topic, by its id; return whether that is another ledger.

        A topic that was created again, or that is in another cluster, has another id. The ledger of the former one
        is kept under its id, and taken up again when the producer returns to it.
        """
        current_id = self.state.topic_ids.get(topic, "")
        own_folder = _kept_path(self.directory, topic_id)
        if current_id == topic_id or not (current_id or (self.is_empty and own_folder.exists())):
            return False
        self._journal.close()
        if current_id:
            self.directory.rename(_kept_path(self.directory, current_id))
        else:
            shutil.rmtree(self.directory)
        if own_folder.exists():
            own_folder.rename(self.directory)
        self.directory.mkdir(exist_ok=True)
        sync_folder(self.directory.parent)
        former_lock, self._lock_handle = self._lock_handle, _lock_directory(self.directory)
        if former_lock is not None:
            os.close(former_lock)
        self.state, self._journal = _open_journal(self.directory)
        return True

    @property
    def is_empty(self) -> bool:
        """Whether the producer never started a session."""
        return not self.state.targets

    def record_intent(
        self,
        first_sequence: int,
        record_count: int,
        position: Any,
        skip_records: int = 0,
        position_after: Any = None,
    ) -> None:
        """Record and sync that records are about to be sent, so that a start after a power cut looks for them."""
        if self._journal.size_bytes > self._max_segment_bytes:
            self._roll_segment()
        self._append_entry(
            DeliveryIntent(
                first_sequence, record_count, position, skip_records, self._clock(), position_after
            )
        )
        self._journal.sync()

    def record_acknowledgements(
        self, chunks: Sequence[tuple[int, Sequence[int], OffsetRunsByTarget]]
    ) -> None:
        """Record and sync the addresses of consecutive chunks: (first sequence, targets, offset runs)."""
        for first_sequence, target_ids, offset_runs in chunks:
            if first_sequence != self.state.acknowledged_until:
                raise LedgerError(
                    f"{self.directory}: sequence {first_sequence} was acknowledged before "
                    f"{self.state.acknowledged_until}. This is a bug in the producer."
                )
            self._append_entry(
                Acknowledgement(
                    first_sequence, len(target_ids), pack_target_ids(target_ids), offset_runs, self._clock()
                )
            )
        self._journal.sync()

    def record_abandonment(self, first_sequence: int, record_count: int) -> None:
        """Record that these records may not have arrived and cannot be sent again."""
        self._append_entry(Abandonment(first_sequence, record_count, self._clock()))
        self._journal.sync()

    def close(self, *, clean: bool) -> None:
        """Close the journal and release the lock; `clean` means that nothing is in flight. Idempotent."""
        if self._lock_handle is None:
            return
        if clean:
            self._append_entry(ProducerClosing(self._clock()))
        self._journal.close()
        os.close(self._lock_handle)
        self._lock_handle = None

    def _append_entry(self, entry: LedgerEntry) -> None:
        self._journal.append(entry)
        self.state.apply_entry(entry)

    def _roll_segment(self) -> None:
        self._journal.close()
        full_segment = self._journal.path
        path = _segment_path(self.directory, _segment_number(full_segment) + 1)
        state, now = self.state, self._clock()
        # Written under a temporary name: a segment without its first entry would lose the position of the producer.
        with atomic_path(path) as partial:
            partial_journal = DeliveryJournal(partial)
            session = ProducerSession(
                state.targets,
                state.last_offsets,
                state.acknowledged_until,
                state.source,
                state.last_intent,
                now,
                state.partitioner_name,
                dict(state.topic_ids),
                state.cluster_id,
            )
            partial_journal.append(session, *state.pending_intents)
            partial_journal.close()
        self._journal = DeliveryJournal(path)
        sync_folder(self.directory)
        compact_segment(full_segment)
        self._delete_expired_segments(now)

    def _delete_expired_segments(self, now: int) -> None:
        """Delete the segments that ended before the retention. A segment ends when the next one starts."""
        if self._retention_ms is None:
            return
        for path, next_path in pairwise(list_segments(self.directory)):
            if _segment_start_ms(next_path) >= now - self._retention_ms:
                return
            path.unlink()


def _open_journal(directory: Path) -> tuple[DeliveryLedgerState, DeliveryJournal]:
    paths = list_segments(directory)
    if paths:
        truncate_torn_entry(paths[-1])
    state = replay_segments(paths)
    journal = DeliveryJournal(paths[-1] if paths else _segment_path(directory, 0))
    sync_files([journal.path])
    return state, journal


def _kept_path(directory: Path, topic_id: str) -> Path:
    """Return where the ledger of another topic is kept; no producer has such a name."""
    file_safe_id = topic_id.replace("+", "-").replace("/", "_")
    return directory.with_name(f"{directory.name}~{file_safe_id}")


def _segment_path(directory: Path, number: int) -> Path:
    return directory / f"{number:08d}.ledger"


def _segment_number(segment: Path) -> int:
    return int(segment.stem)


def _segment_start_ms(segment: Path) -> int:
    """Return the time at which a segment starts, from its first entry."""
    return next(entry.at_ms for entry in read_entries(segment))


def _lock_directory(directory: Path) -> int:
    handle = os.open(directory / "lock", os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise LedgerError(
            f"Another process writes the ledger in {directory}. Wait for it, stop it, or use another producer name."
        ) from error
    return handle
