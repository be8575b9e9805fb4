"""Audits of streams whose definition changed: earlier results are not compared."""

import dataclasses
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.batch.stream_bench import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, make_batches, run_batches
from tests.quality.audit.recorded_stream import create_scope, find_failures, run_checks

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.errors import JournalError
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.sources import Deduplication, WatermarkStrategy
from penstock.engine.plan.stages import Plan
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.upgrade.definition_changes import DefinitionChange, read_definition_changes
from penstock.engine.upgrade.stored_plan import accept_plan
from penstock.quality.audit.checks.results_check import exclude_old_definition, explain_definition_change
from penstock.quality.audit.comparability import Sample

BATCHES_BEFORE_CHANGE = 3


def change_definition(plan: Plan = PLAN) -> Plan:
    """Return the plan with one more pane log and a shorter allowed lateness."""
    stage = dataclasses.replace(plan.only_stage, sinks=(*plan.only_stage.sinks, PaneLog("more")), lateness=10)
    return dataclasses.replace(plan, stages=(stage,))


def accept_definition(bench: Bench) -> None:
    """Accept the definition, as a host does when it starts a stream."""
    accept_plan(
        bench.folder / "stream",
        bench.plan,
        BatchJournal(bench.folder / "stream" / "journal").read_last_outcome(),
    )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A stream whose definition changed between two batches."""
    bench = Bench(PLAN, tmp_path)
    accept_definition(bench)
    feed(bench, BATCHES_BEFORE_CHANGE)
    bench.plan = change_definition()
    accept_definition(bench)
    accept_definition(bench)
    feed(bench, len(make_batches()))
    return bench


def feed(bench: Bench, end: int) -> None:
    run_batches(bench, batches=make_batches()[:end])
    bench.outcomes[:] = BatchJournal(bench.folder / "stream" / "journal").read_outcomes()


def test_a_change_is_stored_with_its_last_batch_and_newest_event_time(bench: Bench) -> None:
    journal = BatchJournal(bench.folder / "stream" / "journal")
    last = journal.read_outcome(bench.outcomes[BATCHES_BEFORE_CHANGE - 1].batch_id)
    newest = max(mark.newest for mark in (last.watermark.marks or {}).values())
    expected = [DefinitionChange(last.batch_id, newest, is_time_bounded=True, tables=["panes/more"])]
    assert read_definition_changes(journal.directory) == expected
    journal.forget_before(bench.outcomes[-1].batch_id)
    assert read_definition_changes(journal.directory) == expected


def test_a_table_added_by_the_change_needs_no_earlier_panes(bench: Bench) -> None:
    assert find_failures(bench) == {}
    assert run_checks(bench)["panes"].state == "passed"


def test_panes_missing_after_the_change_are_found_in_both_tables(bench: Bench) -> None:
    last = bench.outcomes[-1].batch_id
    for table in ("panes/more", "panes/stream"):
        DeltaTable(bench.folder / "warehouse" / table).delete(f"batch_id > {BATCHES_BEFORE_CHANGE}")
        verdict = run_checks(bench)["panes"]
        assert (verdict.state, verdict.summary.partition(",")[0]) == ("failed", table)
        assert int(verdict.summary.partition("batch ")[2].partition(":")[0]) <= last
        DeltaTable(bench.folder / "warehouse" / table).restore(
            DeltaTable(bench.folder / "warehouse" / table).version() - 1
        )


def test_windows_with_records_from_before_the_change_are_excluded(bench: Bench) -> None:
    scope = create_scope(bench)
    (change,) = scope.definition_changes
    assert change.newest is not None
    assert explain_definition_change(scope) is None
    assert exclude_old_definition(scope, Sample()) == Sample(start=change.newest + 1)
    assert exclude_old_definition(scope, Sample(start=10**9)) == Sample(start=10**9)
    before = dataclasses.replace(scope, batches=scope.batches[:BATCHES_BEFORE_CHANGE])
    assert exclude_old_definition(before, Sample()) == Sample()


def test_a_change_within_the_last_batches_is_reported(
    bench: Bench,
) -> None:
    journal = BatchJournal(bench.folder / "stream" / "journal")
    scope = create_scope(bench)
    for outcome in list(journal.read_outcomes())[BATCHES_BEFORE_CHANGE:]:
        path = journal.directory / f"{outcome.batch_id:012d}.outcome.json"
        path.unlink()
        journal.commit_outcome(dataclasses.replace(outcome, plan=fingerprint(PLAN)))
    assert "its definition changed within the last batches" in str(explain_definition_change(scope))


@pytest.mark.parametrize(
    "after",
    [
        {
            "watermark": WatermarkStrategy(
                max_out_of_orderness=5, idle_after=30, max_future_skew=9, future_records="accept"
            )
        },
        {"deduplication": Deduplication(("key",), 100)},
    ],
)
def test_a_change_of_watermark_or_deduplication_is_explained(
    tmp_path: Path, after: dict[str, object]
) -> None:
    bench = Bench(PLAN, tmp_path)
    accept_definition(bench)
    feed(bench, BATCHES_BEFORE_CHANGE)
    (source,) = PLAN.sources
    bench.plan = dataclasses.replace(PLAN, sources=(dataclasses.replace(source, **after),))  # type: ignore[arg-type]
    accept_definition(bench)
    scope = dataclasses.replace(create_scope(bench), journal=bench.folder / "stream" / "journal")
    later = dataclasses.replace(scope.batches[-1], batch_id=scope.upto + 1)
    explanation = explain_definition_change(dataclasses.replace(scope, batches=[*scope.batches, later]))
    assert str(explanation).startswith(f"its definition changed after batch {scope.upto}: ")


def test_an_unreadable_change_file_is_refused_with_the_fix(bench: Bench) -> None:
    journal = bench.folder / "stream" / "journal"
    (journal / "changes.json").write_text("[{")
    with pytest.raises(JournalError, match="Restore the file from a backup"):
        read_definition_changes(journal)
