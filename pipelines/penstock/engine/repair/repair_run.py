"""Lets a stream resume from its newest batch that is whole.

The repair is a batch of its own, after all batches that anything knows. It has the state of the newest whole batch,
and its changes restore the tables to it, so it is committed like every batch. The stream then reads the records
after that batch again.
"""

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from penstock.core.clock import Clock
from penstock.core.file_sync import sync_folder
from penstock.engine.batch.batch_sync import sync_named_files
from penstock.engine.batch.commit_recovery import finish_commits
from penstock.engine.batch.outcome import BatchOutcome
from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.repair.repair_plan import RepairPlan, RepairTarget
from penstock.engine.stream_folders import list_checkpoints

REPAIR_KIND = "repair"
DAMAGED_FOLDER = "damaged"
"""The folder in the journal for the entries that a repair moves away."""


def carry_out_repair(
    target: RepairTarget, repair: RepairPlan, fence: WriteFence, clock: Clock
) -> BatchOutcome:
    """Carry out a repair without blockers, and return its batch.

    A repair that is killed before its outcome leaves the same problems to the next one. After its outcome, the next
    start of the stream finishes it.
    """
    last_whole = repair.last_whole
    assert last_whole is not None, "a repair without a whole batch is blocked"
    fence.ensure_held()
    finish_commits(last_whole, target.plan, target.warehouse, target.client_config)
    outcome = replace(
        last_whole,
        batch_id=repair.newest_batch + 1,
        kind=REPAIR_KIND,
        clock=max(last_whole.clock, clock()),
        epoch=fence.epoch,
        spark_batch=None,  # Spark reads from the ends of this batch, and numbers its batches from 0 again
        changes=repair.changes,
        accounts=(),
        panes={},
        lag_records=0,
        archived=0,
        durations_ms={},
        committed_at_ms=clock(),
    )
    sync_named_files(outcome, target.directory, target.warehouse)
    _move_out(repair.entries_to_move)
    for checkpoint in list_checkpoints(target.directory):
        shutil.rmtree(checkpoint)
    committed = target.journal.commit_outcome(outcome)
    finish_commits(committed, target.plan, target.warehouse, target.client_config)
    return committed


def _move_out(entries: Sequence[Path]) -> None:
    """Move entries out of the journal, where people can still look at them."""
    for path in entries:
        if path.exists():
            folder = path.parent / DAMAGED_FOLDER
            folder.mkdir(exist_ok=True)
            path.rename(folder / path.name)
            sync_folder(folder)
            sync_folder(path.parent)
