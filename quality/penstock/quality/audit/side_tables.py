"""Checks the tables of late and quarantined records against the stream ledger."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from penstock.quality.audit.verdict import AuditDifference

BATCH_COLUMNS = ["topic", "partition", "batch_id"]
ADDRESS_COLUMNS = ["topic", "partition", "offset"]


def check_side_table(
    ledger: pa.Table,
    rows: pa.Table,
    fate: str,
    identity: Sequence[str] | None = tuple(ADDRESS_COLUMNS),
    *,
    allow_more: bool = False,
) -> Iterator[AuditDifference]:
    """Yield differences between a table of single records and the ledger's count of `fate`.

    `identity` names the columns that identify a row; None if a record may have several equal rows. With
    `allow_more`, the table may have more records than the ledger counts: a record that one window accepts can be
    late for others.
    """
    label = f"{fate} of"
    addresses = rows.select([*ADDRESS_COLUMNS, "batch_id"])
    if identity is not None:
        yield from _find_repeated_rows(rows, identity, label)
    yield from _find_unread_rows(ledger, addresses, label)
    distinct = addresses.group_by([*ADDRESS_COLUMNS, "batch_id"]).aggregate([])
    stored_counts = distinct.group_by(BATCH_COLUMNS).aggregate([("offset", "count")])
    joined = (
        ledger.select([*BATCH_COLUMNS, fate])
        .join(stored_counts, BATCH_COLUMNS, join_type="full outer")
        .sort_by("batch_id")
    )
    for row in joined.to_pylist():
        counted, stored = row[fate] or 0, row["offset_count"] or 0
        if stored < counted or (stored > counted and not allow_more):
            yield AuditDifference(
                f"{label} {row['topic']}/{row['partition']}, batch {row['batch_id']}",
                f"the ledger counts {counted} records; the table has {stored}",
            )


def _find_repeated_rows(rows: pa.Table, identity: Sequence[str], label: str) -> Iterator[AuditDifference]:
    counted = rows.group_by(identity).aggregate([([], "count_all")])
    repeated = counted.filter(pc.greater(counted.column("count_all"), 1))
    for row in repeated.sort_by([(name, "ascending") for name in identity]).to_pylist():
        window_start = row.get("window_start")
        window = "" if window_start is None else f" for the window of {window_start:%Y-%m-%d %H:%M:%S}"
        yield AuditDifference(
            f"{label} {row['topic']}/{row['partition']} offset {row['offset']}",
            f"the table has the record {row['count_all']} times{window}",
        )


def _find_unread_rows(ledger: pa.Table, addresses: pa.Table, label: str) -> Iterator[AuditDifference]:
    """Yield records at offsets that their batch did not read."""
    batch_ranges = ledger.select([*BATCH_COLUMNS, "start", "end"])
    rows_with_range = addresses.join(batch_ranges, BATCH_COLUMNS, join_type="left outer")
    is_inside = pc.and_(
        pc.greater_equal(rows_with_range.column("offset"), rows_with_range.column("start")),
        pc.less(rows_with_range.column("offset"), rows_with_range.column("end")),
    )
    outside_rows = rows_with_range.filter(pc.invert(pc.fill_null(is_inside, False)))
    for row in outside_rows.sort_by([(name, "ascending") for name in ADDRESS_COLUMNS]).to_pylist():
        yield AuditDifference(
            f"{label} {row['topic']}/{row['partition']} offset {row['offset']}",
            f"its batch {row['batch_id']} did not read this offset",
        )
