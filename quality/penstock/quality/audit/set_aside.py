"""Whether the records that are in no window are where the ledger says: late, and no good, each with its address."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.quality.audit.verdict import Difference

BATCH = ["topic", "partition", "batch_id"]
ADDRESS = ["topic", "partition", "offset"]


def set_aside(
    ledger: pa.Table,
    rows: pa.Table,
    fate: str,
    once: Sequence[str] | None = tuple(ADDRESS),
    *,
    several: bool = False,
) -> Iterator[Difference]:
    """Yield where a table of single records is not what the ledger counted as `fate`.

    `once` names a row; None where a record may have any number of rows that are the same. With `several` more
    records may have rows than were counted: one that a window took is named for those that it missed, and is not
    late.
    """
    where = f"{fate} of"
    addresses = rows.select([*ADDRESS, "batch_id"])
    if once is not None:
        yield from _twice(rows, once, where)
    yield from _outside(ledger, addresses, where)
    distinct = addresses.group_by([*ADDRESS, "batch_id"]).aggregate([])
    found = distinct.group_by(BATCH).aggregate([("offset", "count")])
    joined = ledger.select([*BATCH, fate]).join(found, BATCH, join_type="full outer").sort_by("batch_id")
    for row in joined.to_pylist():
        told, there = row[fate] or 0, row["offset_count"] or 0
        if there < told or (there > told and not several):
            yield Difference(
                f"{where} {row['topic']}/{row['partition']}, batch {row['batch_id']}",
                f"the ledger counts {told} records, and the table has {there}",
            )


def _twice(rows: pa.Table, once: Sequence[str], where: str) -> Iterator[Difference]:
    counted = rows.group_by(once).aggregate([([], "count_all")])
    again = counted.filter(pc.greater(counted.column("count_all"), 1))
    for row in again.sort_by([(name, "ascending") for name in once]).to_pylist():
        at = row.get("window_start")
        window = "" if at is None else f" for the window of {at:%Y-%m-%d %H:%M:%S}"
        yield Difference(
            f"{where} {row['topic']}/{row['partition']} offset {row['offset']}",
            f"the record is in the table {row['count_all']} times{window}",
        )


def _outside(ledger: pa.Table, addresses: pa.Table, where: str) -> Iterator[Difference]:
    """Yield records that their batch has not read."""
    spans = ledger.select([*BATCH, "start", "end"])
    placed = addresses.join(spans, BATCH, join_type="left outer")
    inside = pc.and_(
        pc.greater_equal(placed.column("offset"), placed.column("start")),
        pc.less(placed.column("offset"), placed.column("end")),
    )
    strange = placed.filter(pc.invert(pc.fill_null(inside, False)))
    for row in strange.sort_by([(name, "ascending") for name in ADDRESS]).to_pylist():
        yield Difference(
            f"{where} {row['topic']}/{row['partition']} offset {row['offset']}",
            f"batch {row['batch_id']}, which it names, has not read it",
        )
