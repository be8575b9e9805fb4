"""A host that was suspended and taken over changes nothing that its successor committed.

Both hosts compute different values, so a replaced row would be visible.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.pipelines.engine.batch.interrupted_writer import InterruptedWriter
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import COUNT_WINDOW_STAGE, PLANS, make_batches, plan_of_stage

from penstock.conformance.reference.input_records import InputBatch
from penstock.engine.batch import history_pruning
from penstock.engine.batch.batch_engine import BatchEngine
from penstock.engine.batch.batch_input import BatchInput
from penstock.engine.batch.batch_rows import BatchRows
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.stream_tables import StreamTables
from penstock.engine.batch_time import BatchTime
from penstock.engine.errors import WriterFencedError
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.plan.stages import Plan
from penstock.engine.storage import file_access as file_access
from penstock.engine.tables.file_maintenance import remove_unreferenced_files
from penstock.engine.tables.table_change import TableChange
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths
from penstock.engine.upgrade.stored_plan import assess_upgrade, store_plan
from penstock.platform.maintenance.table_upkeep import remove_unneeded_files
from penstock.stream import after_count, fixed, repeatedly

PANE_PER_RECORD_STAGE = replace(
    COUNT_WINDOW_STAGE, window=fixed(10), trigger=repeatedly(after_count(1)), lateness=20
)
PLAN = plan_of_stage(replace(PANE_PER_RECORD_STAGE, accumulation="retracting"))
"""Every batch with records emits panes."""

FIRST_BATCH, _, SECOND_BATCH, THIRD_BATCH, LATE_BATCH, LAST_BATCH = make_batches()
BATCHES = [
    InputBatch(0, 100, FIRST_BATCH.records),
    replace(SECOND_BATCH, id=1),
    replace(THIRD_BATCH, id=2),
    replace(LATE_BATCH, id=3),
    LAST_BATCH,
]
TABLES = [*list_owned_paths(PLAN), *list_quarantine_paths(PLAN)]


class SuspendedTables(StreamTables):
    """Tables of a host that is suspended before it writes. `run_meanwhile` is called during the suspension."""

    run_meanwhile: Callable[[], None]

    def write(self, rows: BatchRows, batch_time: BatchTime) -> dict[str, TableChange]:
        self.run_meanwhile()
        return super().write(rows, batch_time)


def make_suspended_tables(run_meanwhile: Callable[[], None]) -> Any:
    def make_tables(plan: Plan, graph: CompiledGraph, warehouse: Path) -> StreamTables:
        tables = SuspendedTables(plan, graph, warehouse)
        tables.run_meanwhile = run_meanwhile
        return tables

    return make_tables


def change_values(batch: InputBatch) -> InputBatch:
    """Return the same records with other values."""
    records = [replace(record, fields={**record.fields, "value": 1_000}) for record in batch.records]
    return InputBatch(batch.id, batch.clock, tuple(records))


class StreamTakeover:
    """A stream whose first host ran the first of some batches, and is stopped somewhere in the second.

    Its successor runs `batches_of_successor` of them, and a third host the rest.
    """

    def __init__(self, folder: Path, plan: Plan = PLAN, batches_of_successor: int = 1) -> None:
        self.bench = Bench(plan, folder)
        self.batches_done = 1 + batches_of_successor
        self.successor: BatchEngine | None = None
        self.has_lease = True

    def open_first_host(self, run_meanwhile: Callable[[], None] | None = None) -> BatchEngine:
        tables = make_suspended_tables(run_meanwhile) if run_meanwhile else StreamTables
        return self.bench.open(epoch=1, is_held=lambda: self.has_lease, make_tables=tables)

    def take_over(self) -> None:
        """Let another host run the batch that the first one is in."""
        if self.successor is None and self.bench.outcomes:
            self.has_lease = False
            self.successor = self.bench.open(epoch=2)
            for batch in BATCHES[1 : self.batches_done]:
                self.bench.feed(self.successor, batch)

    def resume_first_host(self, engine: BatchEngine) -> None:
        """Resume the first host, which must be fenced."""
        with pytest.raises(WriterFencedError, match="another host took it over"):
            self.bench.feed(engine, change_values(BATCHES[1]))

    def finish_batches(self) -> None:
        """Let a third host run the remaining batches from the stored state."""
        third_engine = self.bench.open(epoch=3)
        for batch in BATCHES[self.batches_done :]:
            self.bench.feed(third_engine, batch)

    def rows(self) -> Mapping[str, Any]:
        return {table: self.bench.rows(table) for table in TABLES}


def run_undisturbed(folder: Path, plan: Plan = PLAN) -> Mapping[str, Any]:
    bench = Bench(plan, folder)
    engine = bench.open()
    for batch in BATCHES:
        bench.feed(engine, batch)
    return {table: bench.rows(table) for table in TABLES}


@pytest.mark.parametrize("batch_count", [1, 3])
@pytest.mark.parametrize("name", ["record trigger", "sessions", "count windows"])
def test_a_host_suspended_before_writing_replaces_nothing(
    tmp_path: Path, name: str, batch_count: int
) -> None:
    plan = PLAN if name == "record trigger" else PLANS[name]
    takeover = StreamTakeover(tmp_path / "stream", plan, batch_count)
    first_engine = takeover.open_first_host(takeover.take_over)
    takeover.bench.feed(first_engine, BATCHES[0])
    takeover.resume_first_host(first_engine)
    takeover.finish_batches()
    assert takeover.rows() == run_undisturbed(tmp_path / "undisturbed", plan)


@pytest.mark.parametrize("nth", range(1, 5))
def test_a_host_suspended_in_the_middle_of_a_file_damages_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    takeover = StreamTakeover(tmp_path / "stream")
    first_engine = takeover.open_first_host()
    takeover.bench.feed(first_engine, BATCHES[0])
    monkeypatch.setattr(file_access, "pq", InterruptedWriter(nth, takeover.take_over))
    takeover.resume_first_host(first_engine)
    monkeypatch.undo()
    assert takeover.successor is not None, "the host never wrote that file"
    takeover.finish_batches()
    assert takeover.rows() == run_undisturbed(tmp_path / "undisturbed")


def test_a_host_checks_its_lease_after_computing_and_before_writing(tmp_path: Path) -> None:
    takeover = StreamTakeover(tmp_path)
    first_engine = takeover.open_first_host()
    takeover.bench.feed(first_engine, BATCHES[0])
    files_before = list_files(tmp_path)
    takeover.bench.make_input = make_slow_input(takeover)  # type: ignore[method-assign]
    takeover.resume_first_host(first_engine)
    assert {path.suffix for path in list_files(tmp_path) - files_before} == {".json"}, (
        "the intent, and no rows"
    )


def make_slow_input(takeover: StreamTakeover) -> Any:
    """Return an input that is read until the lease has expired."""

    def make_input(batch: InputBatch, clock: int) -> BatchInput:
        takeover.has_lease = False
        return Bench.make_input(takeover.bench, batch, clock)

    return make_input


def list_files(folder: Path) -> set[Path]:
    """Return every file of a stream and its tables."""
    return {path for path in folder.rglob("*") if path.is_file() and "_delta_log" not in path.parts}


def test_a_host_suspended_while_pruning_removes_no_file_of_its_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_pruning, "RETAINED_BATCHES", 2)
    bench, has_lease, read_outcomes = Bench(PLAN, tmp_path / "stream"), [True], BatchJournal.read_outcomes

    def read_while_suspended(journal: BatchJournal) -> Iterator[BatchOutcome]:
        outcomes = list(read_outcomes(journal))
        if has_lease[0]:
            has_lease[0] = False
            successor = bench.open(epoch=2)
            bench.feed(successor, LAST_BATCH)
        return iter(outcomes)

    first_engine = bench.open(epoch=1, is_held=lambda: has_lease[0])
    for batch in BATCHES[:4]:
        bench.feed(first_engine, batch)
    monkeypatch.setattr(BatchJournal, "read_outcomes", read_while_suspended)
    with pytest.raises(WriterFencedError):
        first_engine.run_tick(140)
    assert bench.open(epoch=3).state_trees["stream"].row_count


def test_files_of_a_fenced_host_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    takeover = StreamTakeover(tmp_path)
    first_engine = takeover.open_first_host(takeover.take_over)
    takeover.bench.feed(first_engine, BATCHES[0])
    takeover.resume_first_host(first_engine)
    monkeypatch.setattr(history_pruning, "RETAINED_BATCHES", 1)
    takeover.finish_batches()
    rows, outcomes = takeover.rows(), list(BatchJournal(tmp_path / "stream" / "journal").read_outcomes())
    added = {
        file.path
        for each in takeover.bench.outcomes
        for change in each.changes.values()
        for file in change.adds
    }
    for table in TABLES:
        remove_unreferenced_files(tmp_path / "warehouse" / table, 0, added)
    assert {path.name for path in list_files(tmp_path / "warehouse")} <= added
    referenced = {name for each in outcomes for names in each.state_files.values() for name in names}
    assert {path.name for path in list_files(tmp_path / "stream" / "state")} <= referenced
    assert takeover.rows() == rows == run_undisturbed(tmp_path / "undisturbed")


def test_reading_the_journal_does_not_disturb_a_batch(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    bench.feed(bench.open(), BATCHES[0])
    store_plan(tmp_path / "stream", PLAN)
    partial_file = tmp_path / "stream" / "journal" / "000000000001.outcome.json.1.partial"
    partial_file.touch()
    assert assess_upgrade(tmp_path / "stream", PLAN) is not None
    assert [each.batch_id for each in BatchJournal(partial_file.parent).read_outcomes()] == [0]
    assert (
        list(
            remove_unneeded_files(
                tmp_path / "warehouse", [tmp_path / "stream"], 7 * 86_400_000, 0, dry_run=True
            )
        )
        == []
    )
    assert partial_file.exists()
    bench.open(epoch=2)
    assert not partial_file.exists(), "the next writer removes it"


class FullDisk:
    """Writes Parquet until the disk is full, in the n-th file."""

    def __init__(self, nth: int) -> None:
        self._files_left = nth

    def write_table(self, rows: pa.Table, path: Path, **options: Any) -> None:
        self._files_left -= 1
        if self._files_left == 0:
            path.write_bytes(b"PAR1")
            raise OSError("no space left on device")
        pq.write_table(rows, path, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(pq, name)


@pytest.mark.parametrize("nth", range(1, 5))
def test_a_failed_table_write_leaves_no_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    bench = Bench(PLAN, tmp_path / "stream")
    bench.feed(bench.open(), BATCHES[0])
    files_before = list_files(bench.folder / "warehouse")
    monkeypatch.setattr(file_access, "pq", FullDisk(nth))
    with pytest.raises(OSError, match="no space left"):
        bench.feed(bench.open(epoch=2), BATCHES[1])
    assert list_files(bench.folder / "warehouse") == files_before
    monkeypatch.undo()
    for batch in BATCHES[1:]:
        bench.feed(bench.open(epoch=3), batch)
    assert {table: bench.rows(table) for table in TABLES} == run_undisturbed(tmp_path / "undisturbed")


def test_a_failed_state_write_leaves_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(PLAN, tmp_path)
    bench.feed(bench.open(), BATCHES[0])
    files_before = list_files(tmp_path)

    def raise_disk_full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", raise_disk_full)
    with pytest.raises(OSError, match="no space left"):
        bench.feed(bench.open(epoch=2), BATCHES[1])
    assert {path.name for path in list_files(tmp_path) - files_before} == {"000000000001.intent.json"}
