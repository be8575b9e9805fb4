"""Removes what no retained batch needs: old entries of the journal, and state files that only they reference."""

from collections import defaultdict

from penstock.engine.batch.committed_state import CommittedState
from penstock.engine.batch.journal import RETAINED_BATCHES, BatchJournal
from penstock.engine.batch.write_fence import WriteFence


def prune_history(journal: BatchJournal, committed: CommittedState, fence: WriteFence, batch_id: int) -> None:
    """Remove history that is no longer needed, once in a while, because it lists folders."""
    # No outcome references the file of a running merge yet, so this waits for the next time.
    if batch_id % RETAINED_BATCHES == 0 and batch_id > RETAINED_BATCHES and not committed.stages.is_merging():
        forget_before(journal, committed, fence, batch_id - RETAINED_BATCHES)


def forget_before(journal: BatchJournal, committed: CommittedState, fence: WriteFence, batch_id: int) -> None:
    """Remove the batches before this one, and every state file that no other batch references."""
    journal.forget_before(batch_id)
    existing_files = list(committed.list_files())
    needed: dict[str, set[str]] = defaultdict(set)
    for outcome in journal.read_outcomes():
        for name, files in outcome.state_files.items():
            needed[name].update(files)
    # In this order: files that a successor writes from now on are not in `existing_files`.
    fence.ensure_held()
    for name, path in existing_files:
        if path.name not in needed[name]:
            path.unlink(missing_ok=True)
