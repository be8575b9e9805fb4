"""Claims Spark's checkpoint of a stream: each epoch has a folder of its own.

Spark plans a batch and records it before the engine checks the write fence. A host that lost its lease and wakes
up may therefore still plan a batch. In a shared folder it would conflict with its successor: when two queries
record the same batch, Spark stops the second.
"""

import shutil
from pathlib import Path

from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.stream_folders import CHECKPOINT_FOLDER, list_checkpoints, parse_checkpoint_epoch


def claim_checkpoint(directory: Path, fence: WriteFence) -> Path:
    """Rename the last writer's checkpoint to the folder of this epoch and return that folder.

    A writer that continues under the old name finds nothing there; the next start removes what it writes. Raises
    WriterFencedError, and changes nothing, when a later epoch has claimed the checkpoint and the lease is lost.
    """
    own_folder = directory / f"{CHECKPOINT_FOLDER}.{fence.epoch}"
    existing = sorted(list_checkpoints(directory), key=parse_checkpoint_epoch)
    if not existing or existing[-1] == own_folder:
        return own_folder
    if parse_checkpoint_epoch(existing[-1]) > fence.epoch:
        # It belongs to a successor, or it is older than a new control store whose epochs start again.
        fence.ensure_held()
    for old_folder in existing[:-1]:
        shutil.rmtree(old_folder, ignore_errors=True)
    existing[-1].rename(own_folder)
    return own_folder
