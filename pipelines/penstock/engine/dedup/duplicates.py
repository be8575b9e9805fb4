"""Split the records of a batch into first records and duplicates. Pure: no Spark, no files."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.state.header_columns import (
    DUE_EVENT,
    GROUP_HI,
    GROUP_LO,
    MAX_TIMESTAMP_MS,
    STATE_HEADER,
    BoolArray,
    Int64Array,
)
from penstock.engine.state.sorted_run import GroupHashes
from penstock.engine.state.state_tree import StateTree

ADDRESS_FIELDS = (
    pa.field("_topic", pa.string()),
    pa.field("_partition", pa.int32()),
    pa.field("_offset", pa.int64()),
)
DUPLICATES_SCHEMA = pa.schema(ADDRESS_FIELDS)
"""Records that are duplicates."""

RECORD_IDS_SCHEMA = pa.schema(
    [
        *ADDRESS_FIELDS,
        pa.field("_id_hi", pa.int64()),
        pa.field("_id_lo", pa.int64()),
        pa.field("_expires_at", pa.int64()),
    ]
)
"""Records that have an id: 128 bits, hashed from their source and the fields that identify them.

`_expires_at` is the watermark at which the id expires if this is the first record that has it.
"""


@dataclass(frozen=True)
class DuplicateSplit:
    """The duplicates of a batch, and the ids that are new, with the watermark at which each expires."""

    duplicates: pa.Table
    new_ids: GroupHashes
    expires_at_ms: Int64Array


def split_duplicates(seen_ids: StateTree, ids: pa.Table) -> DuplicateSplit:
    """Split records into first records and duplicates.

    Within a batch, the lowest address is the first record.
    """
    groups, order, is_first = _sort_ids(ids)
    _, positions = seen_ids.look_up_groups(groups.select(is_first))
    is_seen = np.zeros(int(is_first.sum()), bool)
    is_seen[positions] = True
    # A record is a duplicate unless it is the first of its id and the id is new.
    is_new = is_first.copy()
    is_new[is_first] = ~is_seen
    duplicates = ids.select(DUPLICATES_SCHEMA.names).take(pa.array(np.sort(order[~is_new])))
    expires_at_ms = np.asarray(ids.column("_expires_at")).astype(np.int64)[order]
    return DuplicateSplit(duplicates, groups.select(is_new), expires_at_ms[is_new])


def compute_id_changes(
    seen_ids: StateTree, split: DuplicateSplit, previous_watermark: int, watermark: int
) -> pa.Table:
    """Return the changed rows of the id state.

    They are new ids that have not expired, and tombstones of expired ones.
    """
    is_live = split.expires_at_ms > watermark
    expired = seen_ids.find_due_groups(DUE_EVENT, previous_watermark, watermark)
    new_ids = split.new_ids.select(is_live)
    return pa.concat_tables(
        [
            _build_state_rows(new_ids, split.expires_at_ms[is_live], dropped=False),
            _build_state_rows(expired, np.zeros(len(expired), np.int64), dropped=True),
        ]
    )


def create_empty_split() -> DuplicateSplit:
    """Return the split of a batch without ids."""
    no_hashes = np.empty(0, np.uint64)
    return DuplicateSplit(
        DUPLICATES_SCHEMA.empty_table(), GroupHashes(no_hashes, no_hashes), np.empty(0, np.int64)
    )


def _sort_ids(ids: pa.Table) -> tuple[GroupHashes, Int64Array, BoolArray]:
    """Sort rows by id, then by address.

    Return the ids, their row positions, and which rows are the first of their id.
    """
    hi, lo = (np.asarray(ids.column(name)).astype(np.int64).view(np.uint64) for name in ("_id_hi", "_id_lo"))
    topics = ids.column("_topic").combine_chunks().dictionary_encode()
    topic_rank = np.argsort(np.argsort(np.array(topics.dictionary.to_pylist(), object)))
    address = [
        np.asarray(ids.column("_offset")),
        np.asarray(ids.column("_partition")),
        topic_rank[np.asarray(topics.indices)],
    ]
    order = np.lexsort((*address, lo, hi))
    hi, lo = hi[order], lo[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (hi[1:] != hi[:-1]) | (lo[1:] != lo[:-1])
    return GroupHashes(hi, lo), order, is_first


def _build_state_rows(groups: GroupHashes, expires_at_ms: Int64Array, *, dropped: bool) -> pa.Table:
    count = len(groups)
    columns = {
        GROUP_HI: groups.hi,
        GROUP_LO: groups.lo,
        DUE_EVENT: expires_at_ms,
        "due_clock": np.full(count, MAX_TIMESTAMP_MS, np.int64),
        "dropped": np.full(count, dropped),
    }
    return pa.table([pa.array(columns[field.name]) for field in STATE_HEADER], schema=STATE_HEADER)
