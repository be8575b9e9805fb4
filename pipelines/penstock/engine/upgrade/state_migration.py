"""Rewrites a state for another definition: drops removed columns, and adds declared ones empty."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from penstock.core.clock import Clock, now_ms
from penstock.core.file_sync import sync_files
from penstock.engine.batch.journal import BatchJournal
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.columnar import as_arrow
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.operators.stage_columns import last_pane_column
from penstock.engine.operators.stage_graph import CompiledGraph
from penstock.engine.plan.codec import fingerprint
from penstock.engine.plan.stages import Plan
from penstock.engine.state import sorted_run, state_tree
from penstock.engine.state.file_names import new_run_name
from penstock.engine.upgrade.state_schema_check import check_state_schema
from penstock.engine.upgrade.stored_plan import read_stored_plan, record_definition_change, store_plan

UPGRADE_KIND = "upgrade"


def migrate_state(
    directory: Path,
    plan: Plan,
    graph: CompiledGraph,
    from_now: Collection[str],
    epoch: int,
    clock: Clock = now_ms,
) -> BatchOutcome:
    """Rewrite the state in a folder for these stages; a repeated call changes nothing. No host may write it.

    The new state is committed like a batch, so a kill before the commit leaves the old one intact.
    """
    journal = BatchJournal(directory / "journal")
    last_outcome = journal.read_last_outcome()
    assert last_outcome is not None, "a stream without a state needs no upgrade"
    if last_outcome.plan == fingerprint(plan):
        store_plan(directory, plan)
        return last_outcome
    new_columns = [column for stage in graph.stages for column in _find_new_columns(stage, from_now)]
    check_state_schema(directory, plan.name, graph, last_outcome, new_columns)
    if read_stored_plan(directory) is not None:
        record_definition_change(directory, plan, last_outcome)
    batch_id = last_outcome.batch_id + 1
    files = {
        stage.plan.name: _rewrite_stage(
            directory / "state" / stage.plan.name,
            last_outcome.state_files[stage.plan.name],
            stage,
            from_now,
            batch_id,
        )
        for stage in graph.stages
    }
    outcome = journal.commit_outcome(
        replace(
            last_outcome,
            batch_id=batch_id,
            kind=UPGRADE_KIND,
            epoch=epoch,
            state_files={**last_outcome.state_files, **files},
            changes={},
            accounts=(),
            panes={},
            durations_ms={},
            plan=fingerprint(plan),
            committed_at_ms=clock(),
        )
    )
    store_plan(directory, plan)
    return outcome


def _rewrite_stage(
    folder: Path, files: Sequence[str], stage: CompiledStage, from_now: Collection[str], batch_id: int
) -> list[str]:
    """Write the state of a stage to one file, and return its name."""
    if not files:
        return []
    path = folder / new_run_name(batch_id)
    rows = sorted_run.merge_runs([sorted_run.open_run(folder / name) for name in files], includes_oldest=True)
    sorted_run.write_run(
        sorted_run.build_run_table(_fit_columns(sorted_run.SortedRun(rows).table, stage, from_now)), path
    )
    sync_files([path])
    return [path.name]


def _fit_columns(rows: pa.Table, stage: CompiledStage, from_now: Collection[str]) -> pa.Table:
    """Return the rows with the columns of a stage, in its order."""
    new_columns = _find_new_columns(stage, from_now)
    slots_by_name = {slot.name: slot for slot in stage.stored_columns}
    schema = state_tree.create_empty_tree(stage.state_schema).schema
    columns = [
        rows.column(field.name)
        if field.name in rows.column_names and field.name not in new_columns
        else as_arrow(slots_by_name[field.name].new_column(rows.num_rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _find_new_columns(stage: CompiledStage, from_now: Collection[str]) -> frozenset[str]:
    """Return the columns that start empty: an old column of the same name may mean something else."""
    part_names = [
        part.name
        for accumulator in stage.accumulators
        if accumulator.output in from_now
        for part in accumulator.parts
    ]
    return frozenset([*part_names, *(last_pane_column(part) for part in part_names)])
