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
from tests.pipelines.engine.batch.test_crashes import IN_ORDER, PLANS, history, plan_over

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
from penstock.engine.storage import file_access as files_of_places
from penstock.engine.tables.file_maintenance import remove_unreferenced_files
from penstock.engine.tables.table_change import TableChange
from penstock.engine.tables.table_paths import list_owned_paths, list_quarantine_paths
from penstock.engine.upgrade.stored_plan import assess_upgrade, store_plan
from penstock.platform.maintenance.table_upkeep import remove_unneeded_files
from penstock.stream import after_count, fixed, repeatedly

SHOWN_AT_ONCE = replace(IN_ORDER, window=fixed(10), trigger=repeatedly(after_count(1)), lateness=20)
PLAN = plan_over(replace(SHOWN_AT_ONCE, accumulation="retracting"))
"""Every batch with records emits panes."""

FIRST, _, SECOND, THIRD, LATE, LAST = history()
BATCHES = [
    InputBatch(0, 100, FIRST.records),
    replace(SECOND, id=1),
    replace(THIRD, id=2),
    replace(LATE, id=3),
    LAST,
]
TABLES = [*list_owned_paths(PLAN), *list_quarantine_paths(PLAN)]


class StoppedTables(StreamTables):
    """Tables of a host that is suspended before it writes. `meanwhile` runs during the suspension."""

    meanwhile: Callable[[], None]

    def write(self, rows: BatchRows, moment: BatchTime) -> dict[str, TableChange]:
        self.meanwhile()
        return super().write(rows, moment)


def stopped(meanwhile: Callable[[], None]) -> Any:
    def make(plan: Plan, graph: CompiledGraph, warehouse: Path) -> StreamTables:
        tables = StoppedTables(plan, graph, warehouse)
        tables.meanwhile = meanwhile
        return tables

    return make


def other_values(batch: InputBatch) -> InputBatch:
    """Return the same records with other values."""
    records = [replace(each, fields={**each.fields, "value": 1_000}) for each in batch.records]
    return InputBatch(batch.id, batch.clock, tuple(records))


class TakenOver:
    """A stream whose first host ran the first of some batches, and is stopped somewhere in the second.

    Its successor does `done` of them, and another one the rest.
    """

    def __init__(self, folder: Path, plan: Plan = PLAN, done: int = 1) -> None:
        self.bench = Bench(plan, folder)
        self.done = 1 + done
        self.new: BatchEngine | None = None
        self.held = True

    def old(self, meanwhile: Callable[[], None] | None = None) -> BatchEngine:
        tables = stopped(meanwhile) if meanwhile else StreamTables
        return self.bench.open(epoch=1, holds=lambda: self.held, tables=tables)

    def take_over(self) -> None:
        """Let another host run the batch that the first one is in."""
        if self.new is None and self.bench.told:
            self.held = False
            self.new = self.bench.open(epoch=2)
            for batch in BATCHES[1 : self.done]:
                self.bench.feed(self.new, batch)

    def wake(self, old: BatchEngine) -> None:
        """Resume the first host, which must be fenced."""
        with pytest.raises(WriterFencedError, match="another host took it over"):
            self.bench.feed(old, other_values(BATCHES[1]))

    def go_on(self) -> None:
        """Let a third host run the remaining batches from the stored state."""
        third = self.bench.open(epoch=3)
        for batch in BATCHES[self.done :]:
            self.bench.feed(third, batch)

    def rows(self) -> Mapping[str, Any]:
        return {table: self.bench.rows(table) for table in TABLES}


def undisturbed(folder: Path, plan: Plan = PLAN) -> Mapping[str, Any]:
    bench = Bench(plan, folder)
    engine = bench.open()
    for batch in BATCHES:
        bench.feed(engine, batch)
    return {table: bench.rows(table) for table in TABLES}


@pytest.mark.parametrize("done", [1, 3])
@pytest.mark.parametrize("name", ["at once", "sessions", "by count"])
def test_a_host_suspended_before_writing_replaces_nothing(tmp_path: Path, name: str, done: int) -> None:
    plan = PLAN if name == "at once" else PLANS[name]
    stream = TakenOver(tmp_path / "stream", plan, done)
    old = stream.old(stream.take_over)
    stream.bench.feed(old, BATCHES[0])
    stream.wake(old)
    stream.go_on()
    assert stream.rows() == undisturbed(tmp_path / "calm", plan)


@pytest.mark.parametrize("nth", range(1, 5))
def test_a_host_suspended_in_the_middle_of_a_file_damages_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    stream = TakenOver(tmp_path / "stream")
    old = stream.old()
    stream.bench.feed(old, BATCHES[0])
    monkeypatch.setattr(files_of_places, "pq", InterruptedWriter(nth, stream.take_over))
    stream.wake(old)
    monkeypatch.undo()
    assert stream.new is not None, "it never came to that file"
    stream.go_on()
    assert stream.rows() == undisturbed(tmp_path / "calm")


def test_a_host_checks_its_lease_after_computing_and_before_writing(tmp_path: Path) -> None:
    stream = TakenOver(tmp_path)
    old = stream.old()
    stream.bench.feed(old, BATCHES[0])
    before = files(tmp_path)
    stream.bench.reading = slow_reading(stream)  # type: ignore[method-assign]
    stream.wake(old)
    assert {path.suffix for path in files(tmp_path) - before} == {".json"}, "the intent, and no rows"


def slow_reading(stream: TakenOver) -> Any:
    """Return an input that is read until the lease has expired."""

    def reading(batch: InputBatch, clock: int) -> BatchInput:
        stream.held = False
        return Bench.reading(stream.bench, batch, clock)

    return reading


def files(folder: Path) -> set[Path]:
    """Return every file of a stream and its tables."""
    return {path for path in folder.rglob("*") if path.is_file() and "_delta_log" not in path.parts}


def test_a_host_suspended_while_pruning_removes_no_file_of_its_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_pruning, "RETAINED_BATCHES", 2)
    bench, held, outcomes = Bench(PLAN, tmp_path / "stream"), [True], BatchJournal.read_outcomes

    def suspended(journal: BatchJournal) -> Iterator[BatchOutcome]:
        found = list(outcomes(journal))
        if held[0]:
            held[0] = False
            new = bench.open(epoch=2)
            bench.feed(new, LAST)
        return iter(found)

    old = bench.open(epoch=1, holds=lambda: held[0])
    for batch in BATCHES[:4]:
        bench.feed(old, batch)
    monkeypatch.setattr(BatchJournal, "read_outcomes", suspended)
    with pytest.raises(WriterFencedError):
        old.run_tick(140)
    assert bench.open(epoch=3).state_trees["stream"].row_count


def test_files_of_a_fenced_host_are_pruned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = TakenOver(tmp_path)
    old = stream.old(stream.take_over)
    stream.bench.feed(old, BATCHES[0])
    stream.wake(old)
    monkeypatch.setattr(history_pruning, "RETAINED_BATCHES", 1)
    stream.go_on()
    rows, outcomes = stream.rows(), list(BatchJournal(tmp_path / "stream" / "journal").read_outcomes())
    named = {
        file.path for each in stream.bench.told for change in each.changes.values() for file in change.adds
    }
    for table in TABLES:
        remove_unreferenced_files(tmp_path / "warehouse" / table, 0, named)
    assert {path.name for path in files(tmp_path / "warehouse")} <= named
    kept = {name for each in outcomes for names in each.state_files.values() for name in names}
    assert {path.name for path in files(tmp_path / "stream" / "state")} <= kept
    assert stream.rows() == rows == undisturbed(tmp_path / "calm")


def test_reading_the_journal_does_not_disturb_a_batch(tmp_path: Path) -> None:
    bench = Bench(PLAN, tmp_path)
    bench.feed(bench.open(), BATCHES[0])
    store_plan(tmp_path / "stream", PLAN)
    at_work = tmp_path / "stream" / "journal" / "000000000001.outcome.json.1.partial"
    at_work.touch()
    assert assess_upgrade(tmp_path / "stream", PLAN) is not None
    assert [each.batch_id for each in BatchJournal(at_work.parent).read_outcomes()] == [0]
    assert (
        list(
            remove_unneeded_files(
                tmp_path / "warehouse", [tmp_path / "stream"], 7 * 86_400_000, 0, dry_run=True
            )
        )
        == []
    )
    assert at_work.exists()
    bench.open(epoch=2)
    assert not at_work.exists(), "the next writer puts it away"


class Full:
    """Writes Parquet until the disk is full, in the n-th file."""

    def __init__(self, nth: int) -> None:
        self._left = nth

    def write_table(self, rows: pa.Table, path: Path, **options: Any) -> None:
        self._left -= 1
        if self._left == 0:
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
    before = files(bench.folder / "warehouse")
    monkeypatch.setattr(files_of_places, "pq", Full(nth))
    with pytest.raises(OSError, match="no space left"):
        bench.feed(bench.open(epoch=2), BATCHES[1])
    assert files(bench.folder / "warehouse") == before
    monkeypatch.undo()
    for batch in BATCHES[1:]:
        bench.feed(bench.open(epoch=3), batch)
    assert {table: bench.rows(table) for table in TABLES} == undisturbed(tmp_path / "calm")


def test_a_failed_state_write_leaves_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(PLAN, tmp_path)
    bench.feed(bench.open(), BATCHES[0])
    before = files(tmp_path)

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pa.ipc, "new_file", full)
    with pytest.raises(OSError, match="no space left"):
        bench.feed(bench.open(epoch=2), BATCHES[1])
    assert {path.name for path in files(tmp_path) - before} == {"000000000001.intent.json"}
