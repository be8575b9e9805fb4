"""A stream that goes by another definition than it once did: nothing that it made before is held against it."""

import dataclasses
from pathlib import Path

import pytest
from deltalake import DeltaTable
from tests.pipelines.engine.batch.stored import Bench
from tests.pipelines.engine.batch.test_crashes import PLAN, Fuse, history, run
from tests.quality.audit.test_books import scope_of, verdicts, wrong

from penstock.engine.batch.journal import BatchJournal
from penstock.engine.errors import JournalError
from penstock.engine.plan import Deduplication, Plan, WatermarkStrategy
from penstock.engine.plan.codec import fingerprint
from penstock.engine.sinks.pane_log import PaneLog
from penstock.engine.upgrade.definition_changes import DefinitionChange, read_definition_changes
from penstock.engine.upgrade.stored_plan import accept_plan
from penstock.quality.audit.comparability import Sample
from penstock.quality.audit.recompute_check import exclude_old_definition, explain_definition_change

HALF = 3


def redefined(plan: Plan = PLAN) -> Plan:
    """The same with another table of all panes, and a shorter wait for late records."""
    stage = dataclasses.replace(plan.only_stage, sinks=(*plan.only_stage.sinks, PaneLog("more")), lateness=10)
    return dataclasses.replace(plan, stages=(stage,))


def begun(bench: Bench) -> None:
    """Take up the definition as a host does when it starts a stream."""
    accept_plan(
        bench.folder / "stream",
        bench.plan,
        BatchJournal(bench.folder / "stream" / "journal").read_last_outcome(),
    )


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A stream that was defined otherwise in the middle of its life."""
    bench = Bench(PLAN, tmp_path)
    begun(bench)
    feed(bench, HALF)
    bench.plan = redefined()
    begun(bench)
    begun(bench)
    feed(bench, len(history()))
    return bench


def feed(bench: Bench, end: int) -> None:
    run(bench, Fuse(-1), history()[:end])
    bench.told[:] = BatchJournal(bench.folder / "stream" / "journal").read_outcomes()


def test_a_change_is_written_down_with_the_last_batch_before_it_and_what_that_had_read(bench: Bench) -> None:
    journal = BatchJournal(bench.folder / "stream" / "journal")
    last = journal.read_outcome(bench.told[HALF - 1].batch_id)
    newest = max(mark.newest for mark in (last.watermark.marks or {}).values())
    noted = [DefinitionChange(last.batch_id, newest, is_time_bounded=True, tables=["panes/more"])]
    assert read_definition_changes(journal.directory) == noted
    journal.forget_before(bench.told[-1].batch_id)
    assert read_definition_changes(journal.directory) == noted


def test_a_table_that_began_with_the_change_is_not_asked_for_the_panes_before_it(bench: Bench) -> None:
    assert wrong(bench) == {}
    assert verdicts(bench)["panes"].state == "passed"


def test_panes_that_are_missing_since_are_found_in_both_tables(bench: Bench) -> None:
    last = bench.told[-1].batch_id
    for table in ("panes/more", "panes/stream"):
        DeltaTable(bench.folder / "warehouse" / table).delete(f"batch_id > {HALF}")
        found = verdicts(bench)["panes"]
        assert (found.state, found.summary.partition(",")[0]) == ("failed", table)
        assert int(found.summary.partition("batch ")[2].partition(":")[0]) <= last
        DeltaTable(bench.folder / "warehouse" / table).restore(
            DeltaTable(bench.folder / "warehouse" / table).version() - 1
        )


def test_windows_that_may_have_a_record_from_before_are_left_out_however_long_it_was(bench: Bench) -> None:
    scope = scope_of(bench)
    (change,) = scope.definition_changes
    assert change.newest is not None
    assert explain_definition_change(scope) is None
    assert exclude_old_definition(scope, Sample()) == Sample(start=change.newest + 1)
    assert exclude_old_definition(scope, Sample(start=10**9)) == Sample(start=10**9)
    before = dataclasses.replace(scope, batches=scope.batches[:HALF])
    assert exclude_old_definition(before, Sample()) == Sample()


def test_what_the_last_batches_were_made_by_still_is_what_an_edited_file_is_compared_with(
    bench: Bench,
) -> None:
    journal = BatchJournal(bench.folder / "stream" / "journal")
    scope = scope_of(bench)
    for one in list(journal.read_outcomes())[HALF:]:
        path = journal.directory / f"{one.batch_id:012d}.outcome.json"
        path.unlink()
        journal.commit_outcome(dataclasses.replace(one, plan=fingerprint(PLAN)))
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
def test_where_it_cannot_be_told_which_windows_are_younger_it_is_said_so(
    tmp_path: Path, after: dict[str, object]
) -> None:
    bench = Bench(PLAN, tmp_path)
    begun(bench)
    feed(bench, HALF)
    (source,) = PLAN.sources
    bench.plan = dataclasses.replace(PLAN, sources=(dataclasses.replace(source, **after),))  # type: ignore[arg-type]
    begun(bench)
    scope = dataclasses.replace(scope_of(bench), journal=bench.folder / "stream" / "journal")
    later = dataclasses.replace(scope.batches[-1], batch_id=scope.upto + 1)
    told = explain_definition_change(dataclasses.replace(scope, batches=[*scope.batches, later]))
    assert str(told).startswith(f"its definition changed after batch {scope.upto}: ")


def test_a_file_of_changes_that_cannot_be_read_is_said_with_what_to_do(bench: Bench) -> None:
    journal = bench.folder / "stream" / "journal"
    (journal / "changes.json").write_text("[{")
    with pytest.raises(JournalError, match="Restore the file from a backup"):
        read_definition_changes(journal)
