"""The records that a join without windows has in hand: those that are held, and those that came."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.fold.joined import keyless
from penstock.pipelines.fold.keyed import TOPIC, KeysInHand
from penstock.pipelines.fold.order.slots import MATCHED as MEETS
from penstock.pipelines.fold.pairing.slots import ENDS, LEFT, MATCHED, TIME, held_name, tells_ends
from penstock.pipelines.fold.rows import numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.state.columns import Ints, Mask


@dataclass(frozen=True)
class Records:
    """Records with the number of their key: those that are held first, then those that came, in their order.

    `matched` says which have met a partner before.
    """

    key: Ints
    left: Mask
    time: Ints
    new: Mask
    matched: Mask
    apart: Mask
    """Those whose key has a null in it: as in SQL, they meet nobody."""
    ends: Mask
    """Those of the right from whose time on there is nobody to meet."""
    fields: pa.Table

    def __len__(self) -> int:
        """How many there are."""
        return len(self.key)


def records_in(stage: ReadyStage, hand: KeysInHand) -> Records:
    """What is held of the keys in hand, and what came for them."""
    join = stage.plan.join
    assert join is not None
    known, came = hand.known, hand.records
    names = [field.name for field in stage.fields]
    held = known.select([held_name(name) for name in names]).rename_columns(names)
    of_left = np.asarray(pc.equal(came.column(TOPIC), join.left))
    key = np.append(hand.key_of_known, hand.key_of_record)
    return Records(
        key,
        np.append(numpy_column(known.column(LEFT)), of_left).astype(bool),
        np.append(numpy_column(known.column(TIME)), numpy_column(came.column("_time"))),
        np.append(np.zeros(known.num_rows, bool), np.ones(came.num_rows, bool)),
        np.append(numpy_column(known.column(MATCHED)), np.zeros(came.num_rows, bool)).astype(bool),
        keyless(stage, hand.names)[key],
        _ends(stage, hand),
        pa.concat_tables([held, came.select(names)]).combine_chunks(),
    )


def _ends(stage: ReadyStage, hand: KeysInHand) -> Mask:
    if not tells_ends(stage.plan.window):
        return np.zeros(hand.known.num_rows + hand.records.num_rows, bool)
    held, came = hand.known.column(ENDS), hand.records.column(MEETS.name)
    return np.append(numpy_column(held), numpy_column(came)).astype(bool)
