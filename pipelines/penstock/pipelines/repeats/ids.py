"""The ids of a batch's records, and which of them were seen before. Pure: it knows no Spark and no files."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.state.columns import DUE_EVENT, GROUP_HI, GROUP_LO, HEADER, NEVER, Ints, Mask
from penstock.pipelines.state.run import Groups
from penstock.pipelines.state.tree import Tree

ADDRESS = (
    pa.field("_topic", pa.string()),
    pa.field("_partition", pa.int32()),
    pa.field("_offset", pa.int64()),
)
REPEATS = pa.schema(ADDRESS)
"""Records that are repeats of others."""

IDS = pa.schema(
    [
        *ADDRESS,
        pa.field("_id_hi", pa.int64()),
        pa.field("_id_lo", pa.int64()),
        pa.field("_forget_at", pa.int64()),
    ]
)
"""Records that have an id: 128 bits made of their source and the fields that identify them.

`_forget_at` is the watermark at which the id is forgotten if this is the first record that has it.
"""


@dataclass(frozen=True)
class Sifted:
    """What becomes of a batch's ids: the records that are repeats, and the ids that were not known before."""

    repeats: pa.Table
    new: Groups
    forget_at: Ints


def sift(known: Tree, ids: pa.Table) -> Sifted:
    """Tell repeats from first records; of several in one batch the one with the lowest address is the first."""
    groups, order, first = _in_order(ids)
    _, positions = known.lookup(groups.where(first))
    old = np.zeros(int(first.sum()), bool)
    old[positions] = True
    # A record is a repeat unless it is the first of its id, and the id is new.
    is_new = first.copy()
    is_new[first] = ~old
    repeats = ids.select(REPEATS.names).take(pa.array(np.sort(order[~is_new])))
    forget_at = np.asarray(ids.column("_forget_at")).astype(np.int64)[order]
    return Sifted(repeats, groups.where(is_new), forget_at[is_new])


def changes(known: Tree, sifted: Sifted, before: int, watermark: int) -> pa.Table:
    """What the state is to hold after a batch: new ids that are not over yet, and word of those that are."""
    lasting = sifted.forget_at > watermark
    over = known.due(DUE_EVENT, before, watermark)
    new = sifted.new.where(lasting)
    return pa.concat_tables(
        [
            _rows(new, sifted.forget_at[lasting], dropped=False),
            _rows(over, np.zeros(len(over), np.int64), dropped=True),
        ]
    )


def nothing_sifted() -> Sifted:
    """What becomes of no ids."""
    none = np.empty(0, np.uint64)
    return Sifted(REPEATS.empty_table(), Groups(none, none), np.empty(0, np.int64))


def _in_order(ids: pa.Table) -> tuple[Groups, Ints, Mask]:
    """Ids in order, those of one by address; where each row was; and which rows are the first of theirs."""
    hi, lo = (np.asarray(ids.column(name)).astype(np.int64).view(np.uint64) for name in ("_id_hi", "_id_lo"))
    topics = ids.column("_topic").combine_chunks().dictionary_encode()
    rank = np.argsort(np.argsort(np.array(topics.dictionary.to_pylist(), object)))
    address = [
        np.asarray(ids.column("_offset")),
        np.asarray(ids.column("_partition")),
        rank[np.asarray(topics.indices)],
    ]
    order = np.lexsort((*address, lo, hi))
    hi, lo = hi[order], lo[order]
    first = np.ones(len(order), bool)
    first[1:] = (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1])
    return Groups(hi, lo), order, first


def _rows(groups: Groups, forget_at: Ints, *, dropped: bool) -> pa.Table:
    count = len(groups)
    columns = {
        GROUP_HI: groups.hi,
        GROUP_LO: groups.lo,
        DUE_EVENT: forget_at,
        "due_clock": np.full(count, NEVER, np.int64),
        "dropped": np.full(count, dropped),
    }
    return pa.table([pa.array(columns[field.name]) for field in HEADER], schema=HEADER)
