"""Spark's checkpoint of a stream: in a folder that no writer before has written in, nor ever will.

Spark plans a batch and writes that down before anybody asks whether this host may still write the stream. A host
that was taken over, and plans one batch more as it wakes, would be in its successor's way: of two that write down
the same batch Spark ends the second.
"""

import shutil
from pathlib import Path

from penstock.engine.batch.write_fence import WriteFence
from penstock.engine.stream_folders import CHECKPOINT_FOLDER, list_checkpoints, parse_checkpoint_epoch


def claim_checkpoint(directory: Path, fence: WriteFence) -> Path:
    """Take what the last writer left in a stream's folder under a name of this epoch's own.

    Whoever goes on under the old name finds nothing there, and what it writes goes with the next start.
    FencedError, and nothing changed, where a later one has taken it and this one's right is over.
    """
    own_folder = directory / f"{CHECKPOINT_FOLDER}.{fence.epoch}"
    existing = sorted(list_checkpoints(directory), key=parse_checkpoint_epoch)
    if not existing or existing[-1] == own_folder:
        return own_folder
    if (
        parse_checkpoint_epoch(existing[-1]) > fence.epoch
    ):  # a successor's, or of before the control store was made anew
        fence.ensure_held()
    for old_folder in existing[:-1]:
        shutil.rmtree(old_folder, ignore_errors=True)
    existing[-1].rename(own_folder)
    return own_folder
