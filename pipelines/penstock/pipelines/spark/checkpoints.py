"""Spark's checkpoint of a stream: in a folder that no writer before has written in, nor ever will.

Spark plans a batch and writes that down before anybody asks whether this host may still write the stream. A host
that was taken over, and plans one batch more as it wakes, would be in its successor's way: of two that write down
the same batch Spark ends the second.
"""

import shutil
from pathlib import Path

from penstock.pipelines.batch.right import Right
from penstock.pipelines.host.folders import CHECKPOINT, checkpoints, epoch_of


def own_checkpoint(directory: Path, right: Right) -> Path:
    """Take what the last writer left in a stream's folder under a name of this epoch's own.

    Whoever goes on under the old name finds nothing there, and what it writes goes with the next start.
    FencedError, and nothing changed, where a later one has taken it and this one's right is over.
    """
    mine = directory / f"{CHECKPOINT}.{right.epoch}"
    left = sorted(checkpoints(directory), key=epoch_of)
    if not left or left[-1] == mine:
        return mine
    if epoch_of(left[-1]) > right.epoch:  # a successor's, or of before the control store was made anew
        right.check()
    for each in left[:-1]:
        shutil.rmtree(each, ignore_errors=True)
    left[-1].rename(mine)
    return mine
