"""Checks that each batch read the records of its offsets, and that quarantined records have their bytes."""

from collections.abc import Iterator, Mapping
from itertools import chain as one_after_another

import numpy as np
import pyarrow as pa

from penstock.engine.spark.bounded_sources import BoundedSource
from penstock.quality.audit.audit_check import topic_check
from penstock.quality.audit.ledger_coverage import (
    explain_compacted,
    explain_expired,
    list_offset_ranges,
    select_topic,
)
from penstock.quality.audit.offset_runs import check_records_read
from penstock.quality.audit.topic_view import OffsetBounds, TopicView
from penstock.quality.audit.verdict import AuditDifference, CheckOutcome, judge_differences, unproven_outcome

OFFSET_COLUMNS = ["partition", "offset"]
BYTE_COLUMNS = ["key", "value"]


@topic_check("reading", order=30)
def check_reading(topic_view: TopicView) -> CheckOutcome:
    """Each batch read as many records as its offsets have, and quarantined records have the bytes of the topic."""
    ledger = select_topic(topic_view.scope.ledger, topic_view.topic)
    source = topic_view.find_source(list_offset_ranges(ledger))
    if source is None:
        return unproven_outcome(explain_expired(topic_view.topic))
    place_text = "the topic" if source is topic_view.topic_source else "the archive"
    read_differences = check_records_read(
        ledger, topic_view.offset_runs(source), place_text, is_compacted=topic_view.is_compacted
    )
    differences = list(
        one_after_another(read_differences, check_quarantine_bytes(topic_view, source, place_text))
    )
    if not differences and topic_view.has_lost_records(ledger, source):
        return unproven_outcome(explain_compacted(topic_view.topic))
    success_text = (
        f"each batch read the records that {place_text} has, and quarantined records have its bytes"
    )
    return judge_differences(differences, success_text)


def check_quarantine_bytes(
    topic_view: TopicView, source: BoundedSource, place_text: str
) -> Iterator[AuditDifference]:
    """Yield quarantined records whose bytes differ from `source`, or that it does not have.

    Reads only the offsets between the first and the last quarantined record. Offsets that were not read belong to
    another check.
    """
    bounds = topic_view.topic_bounds if source is topic_view.topic_source else topic_view.archive_bounds
    rows = _quarantined_within(topic_view, bounds)
    if not rows.num_rows:
        return
    bounds_by_partition = {number: (first, first) for number, (first, _) in bounds.items()}
    for row in rows.group_by("partition").aggregate([("offset", "min"), ("offset", "max")]).to_pylist():
        bounds_by_partition[row["partition"]] = (row["offset_min"], row["offset_max"] + 1)
    records = source.read_records(topic_view.to_ranges(bounds_by_partition))
    addresses = records.sparkSession.createDataFrame(rows.select(OFFSET_COLUMNS)).distinct()
    topic_rows = (
        records.join(addresses.hint("broadcast"), OFFSET_COLUMNS, "left_semi")
        .select(*OFFSET_COLUMNS, *BYTE_COLUMNS)
        .toArrow()
    )
    rows_by_address = {(row["partition"], row["offset"]): row for row in topic_rows.to_pylist()}
    for quarantined_row in rows.sort_by([(name, "ascending") for name in OFFSET_COLUMNS]).to_pylist():
        original = rows_by_address.get((quarantined_row["partition"], quarantined_row["offset"]))
        if original is None and topic_view.is_compacted:
            continue  # compaction removed it
        description = _describe_byte_difference(quarantined_row, original, place_text)
        if description:
            yield AuditDifference(
                f"quarantined of {topic_view.topic}/{quarantined_row['partition']} "
                f"offset {quarantined_row['offset']}",
                description,
            )


def _quarantined_within(topic_view: TopicView, bounds: Mapping[int, OffsetBounds]) -> pa.Table:
    """Return the quarantined records of a topic inside of the bounds."""
    rows = select_topic(topic_view.scope.quarantined_rows, topic_view.topic)
    if not rows.num_rows:
        return rows
    limits = [bounds.get(number, (0, 0)) for number in rows.column("partition").to_pylist()]
    first, end = np.asarray(limits).T
    offsets = np.asarray(rows.column("offset"))
    return rows.select([*OFFSET_COLUMNS, *BYTE_COLUMNS]).filter(
        pa.array((first <= offsets) & (offsets < end))
    )


def _describe_byte_difference(
    quarantined_row: dict[str, object], original: dict[str, object] | None, place_text: str
) -> str:
    if original is None:
        return f"the quarantine has it, but {place_text} has no record there"
    name = next((name for name in BYTE_COLUMNS if quarantined_row[name] != original[name]), None)
    return "" if name is None else f"its {name} differs between the quarantine and {place_text}"
