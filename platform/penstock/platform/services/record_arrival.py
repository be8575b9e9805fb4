"""Whether the tables of a stream contain a record, and what became of it.

The journal says which offsets are committed, and which tables their batch changes. The ledger says what became of
the records of a batch. Late and quarantined records are stored with their addresses. Duplicate and filtered ones
are only counted, so that a record may have several possible fates.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from penstock.core.errors import WaitTimeoutError
from penstock.engine.batch.input_watermarks import topic_of
from penstock.engine.batch.intent import partition_name
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.storage import StoragePath
from penstock.engine.storage.file_access import is_delta_table, open_delta_table
from penstock.engine.stream_folders import resolve_stream_folder
from penstock.engine.tables.table_paths import late_records_path, stage_ledger_path
from penstock.query.table_rows import read_table_rows
from penstock.query.table_snapshots import TableSnapshot

RecordFate: TypeAlias = Literal["aggregated", "late", "quarantined", "duplicate", "filtered", "skipped"]
POLL_INTERVAL_S = 0.01


@dataclass(frozen=True)
class RecordAddress:
    """A record of a topic."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        """Return the address as messages show it."""
        return f"{partition_name(self.topic, self.partition)} offset {self.offset}"


@dataclass(frozen=True)
class RecordArrival:
    """What became of a record in a stage of a stream. Several fates are possible ones."""

    stream: str
    stage: str
    fates: tuple[RecordFate, ...]
    batch_id: int | None
    reason: str = ""

    def describe(self) -> str:
        """Describe it in a sentence."""
        place = self.stream if self.stage == self.stream else f"{self.stream}, stage {self.stage}"
        if self.fates == ("skipped",):
            return f"{place}: not read; the stream started after this record"
        detail = f" ({self.reason})" if self.reason else ""
        return f"{place}: {' or '.join(self.fates)}{detail}, in batch {self.batch_id}"


def wait_for_record(
    plans: Sequence[Plan],
    streams: Path,
    warehouse: StoragePath,
    address: RecordAddress,
    timeout_s: float,
    sleep: Callable[[float], None] = time.sleep,
) -> list[RecordArrival]:
    """Return once all tables of these streams contain the record; raise WaitTimeoutError after the timeout."""
    deadline, pending = time.monotonic() + timeout_s, list(plans)
    while True:
        pending = [plan for plan in pending if not _is_committed(plan, streams, warehouse, address)]
        if not pending:
            return [arrival for plan in plans for arrival in find_arrivals(plan, warehouse, address)]
        if time.monotonic() >= deadline:
            states = "; ".join(_describe_progress(plan, streams, address) for plan in pending)
            raise WaitTimeoutError(
                f"{address} is not in all tables after {timeout_s:g} s: {states}. "
                "`penstock status` shows whether the stream runs"
            )
        sleep(POLL_INTERVAL_S)


def find_arrivals(plan: Plan, warehouse: StoragePath, address: RecordAddress) -> list[RecordArrival]:
    """Return what became of a record that is committed, for each stage that reads its topic."""
    topics_by_source = {source.name: topic_of(source) for source in plan.sources}
    stages = [
        stage
        for stage in plan.source_stages
        if address.topic in (topics_by_source.get(name) for name in stage.inputs)
    ]
    return [_find_arrival(plan, stage, warehouse, address) for stage in stages]


def has_run(plan: Plan, streams: Path) -> bool:
    """Whether a stream has a committed batch."""
    return _read_last_outcome(plan, streams) is not None


def _is_committed(plan: Plan, streams: Path, warehouse: StoragePath, address: RecordAddress) -> bool:
    """Whether all tables contain the batch of a record. Batches are sequential: the one before the last is done."""
    last = _read_last_outcome(plan, streams)
    if last is None or _read_end(last, address) <= address.offset:
        return False
    journal = _open_journal(plan, streams)
    before = next((each for each in journal.read_outcomes() if each.batch_id == last.batch_id - 1), None)
    if before is not None and _read_end(before, address) > address.offset:
        return True
    return all(_has_batch(warehouse / path, plan.name, last.batch_id) for path in last.changes)


def _has_batch(path: StoragePath, stream: str, batch_id: int) -> bool:
    """Whether a table took a batch. A published topic is no table."""
    if not is_delta_table(path):
        return True
    version = open_delta_table(path).transaction_version(stream)
    return version is not None and version >= batch_id


def _find_arrival(plan: Plan, stage: Stage, warehouse: StoragePath, address: RecordAddress) -> RecordArrival:
    def arrive(*fates: RecordFate, batch_id: int | None, reason: str = "") -> RecordArrival:
        return RecordArrival(plan.name, stage.name, fates, batch_id, reason)

    partition = f"topic = '{address.topic}' AND \"partition\" = {address.partition}"
    ledger = _read_rows(
        warehouse,
        stage_ledger_path(plan, stage),
        f'{partition} AND "start" <= {address.offset} AND "end" > {address.offset}',
    )
    if not ledger:
        return arrive("skipped", batch_id=None)
    account = ledger[0]
    batch_id = account["batch_id"]
    record = f'{partition} AND "offset" = {address.offset}'
    source = next(each for each in plan.sources if topic_of(each) == address.topic)
    if account["quarantined"]:
        invalid = _read_rows(warehouse, f"quarantine/{source.name}", f"{record} AND stream = '{plan.name}'")
        if invalid:
            return arrive("quarantined", batch_id=batch_id, reason=invalid[0]["reason"])
    late = _read_rows(warehouse, late_records_path(plan, stage), f"{partition} AND batch_id = {batch_id}")
    missed = [row for row in late if row["offset"] == address.offset]
    if missed and account["late"]:
        # A record that one of its windows took is aggregated, and in the late table for the others.
        is_certain = len({row["offset"] for row in late}) == account["late"]
        reason = f"by {missed[0]['missed_by_ms'] / 1000:g} s"
        return arrive(
            *(("late",) if is_certain else ("late", "aggregated")), batch_id=batch_id, reason=reason
        )
    counted: tuple[tuple[RecordFate, str], ...] = (
        ("aggregated", "accepted"),
        ("duplicate", "duplicate"),
        ("filtered", "filtered"),
    )
    return arrive(*(fate for fate, column in counted if account[column]), batch_id=batch_id)


def _read_rows(warehouse: StoragePath, path: str, where: str) -> list[dict[str, Any]]:
    if not is_delta_table(warehouse / path):
        return []
    snapshot = TableSnapshot(path, path, open_delta_table(warehouse / path), None)
    rows: list[dict[str, Any]] = read_table_rows(snapshot, where=where).to_pylist()
    return rows


def _describe_progress(plan: Plan, streams: Path, address: RecordAddress) -> str:
    last = _read_last_outcome(plan, streams)
    end = 0 if last is None else _read_end(last, address)
    return f"stream {plan.name} has committed offsets below {end}"


def _read_end(outcome: BatchOutcome, address: RecordAddress) -> int:
    return outcome.ends.get(partition_name(address.topic, address.partition), 0)


def _read_last_outcome(plan: Plan, streams: Path) -> BatchOutcome | None:
    return _open_journal(plan, streams).read_last_outcome()


def _open_journal(plan: Plan, streams: Path) -> BatchJournal:
    return BatchJournal(resolve_stream_folder(streams, plan.name) / "journal")
