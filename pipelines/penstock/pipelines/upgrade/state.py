"""A state rewritten for another definition: columns that are gone are left out, declared ones begin empty."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from penstock.pipelines.batch.journal import Journal
from penstock.pipelines.batch.outcome import Outcome
from penstock.pipelines.fold.graph import ReadyGraph
from penstock.pipelines.fold.rows import arrow
from penstock.pipelines.fold.stage import ReadyStage, shown_name
from penstock.pipelines.plan.codec import fingerprint
from penstock.pipelines.plan.stage import Plan
from penstock.pipelines.state import run as runs_of
from penstock.pipelines.state import tree as trees
from penstock.pipelines.state.names import run_name
from penstock.pipelines.upgrade.fitting import check_types
from penstock.pipelines.upgrade.stored import note, store_plan, stored_plan

KIND = "upgrade"


def migrate(directory: Path, plan: Plan, graph: ReadyGraph, from_now: Collection[str], epoch: int) -> Outcome:
    """Rewrite the state in a folder for these stages; done again it changes nothing. Nobody else may write it.

    The new state is decided like a batch, so whoever is killed before finds the old one, whole.
    """
    journal = Journal(directory / "journal")
    last = journal.last_outcome()
    assert last is not None, "a stream without a state needs no upgrade"
    if last.plan == fingerprint(plan):
        store_plan(directory, plan)
        return last
    anew = [column for stage in graph.stages for column in _begun_anew(stage, from_now)]
    check_types(directory, plan.name, graph, last, anew)
    if stored_plan(directory) is not None:
        note(directory, plan, last)
    number = last.batch_id + 1
    files = {
        stage.plan.name: _rewritten(
            directory / "state" / stage.plan.name, last.state_files[stage.plan.name], stage, from_now, number
        )
        for stage in graph.stages
    }
    decided = journal.decide(
        replace(
            last,
            batch_id=number,
            kind=KIND,
            epoch=epoch,
            state_files={**last.state_files, **files},
            changes={},
            accounts=(),
            panes={},
            durations_ms={},
            plan=fingerprint(plan),
        )
    )
    store_plan(directory, plan)
    return decided


def _rewritten(
    folder: Path, files: Sequence[str], stage: ReadyStage, from_now: Collection[str], number: int
) -> list[str]:
    """Write the state of a stage into one file, and name it."""
    if not files:
        return []
    path = folder / run_name(number)
    rows = runs_of.merge([runs_of.read(folder / name) for name in files], oldest=True)
    runs_of.write(runs_of.build(_fitted(runs_of.Run(rows).table, stage, from_now)), path)
    return [path.name]


def _fitted(rows: pa.Table, stage: ReadyStage, from_now: Collection[str]) -> pa.Table:
    """The rows with the columns of a stage, in its order."""
    fresh = _begun_anew(stage, from_now)
    initial = {slot.name: slot for slot in stage.kept}
    schema = trees.empty(stage.state_columns).schema
    columns = [
        rows.column(field.name)
        if field.name in rows.column_names and field.name not in fresh
        else arrow(initial[field.name].fresh(rows.num_rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _begun_anew(stage: ReadyStage, from_now: Collection[str]) -> frozenset[str]:
    """The columns of outputs that count from now on: of the same name they may have meant something else."""
    parts = [part.name for each in stage.accumulators if each.output in from_now for part in each.parts]
    return frozenset([*parts, *(shown_name(part) for part in parts)])
