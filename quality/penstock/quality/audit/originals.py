"""Whether the quarantine has the bytes that its records have in their topic: those are what is sent again."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.spark.stored import Stored
from penstock.quality.audit.kept import Bounds, Kept
from penstock.quality.audit.verdict import Difference

PLACE = ["partition", "offset"]
BYTES = ["key", "value"]


def originals(kept: Kept, source: Stored, where: str) -> Iterator[Difference]:
    """Yield the quarantined records that have other bytes than `source` has at their addresses, or none there.

    Only what lies between them is read; what is not at an address that was read is for another check to say.
    """
    bounds = kept.live if source is kept.in_topic else kept.archived
    rows = _within(kept, bounds)
    if not rows.num_rows:
        return
    spans = {number: (first, first) for number, (first, _) in bounds.items()}
    for row in rows.group_by("partition").aggregate([("offset", "min"), ("offset", "max")]).to_pylist():
        spans[row["partition"]] = (row["offset_min"], row["offset_max"] + 1)
    records = source.records(kept.spans(spans))
    places = records.sparkSession.createDataFrame(rows.select(PLACE)).distinct()
    found = records.join(places.hint("broadcast"), PLACE, "left_semi").select(*PLACE, *BYTES).toArrow()
    theirs = {(row["partition"], row["offset"]): row for row in found.to_pylist()}
    for ours in rows.sort_by([(name, "ascending") for name in PLACE]).to_pylist():
        original = theirs.get((ours["partition"], ours["offset"]))
        if original is None and kept.compacted:
            continue  # it gave way to the next one of its key
        what = _apart(ours, original, where)
        if what:
            yield Difference(f"quarantined of {kept.topic}/{ours['partition']} offset {ours['offset']}", what)


def _within(kept: Kept, bounds: Mapping[int, Bounds]) -> pa.Table:
    """The quarantined records of a topic that lie in bounds."""
    rows = kept.scope.quarantined
    rows = rows.filter(pc.equal(rows.column("topic"), kept.topic))
    if not rows.num_rows:
        return rows
    limits = [bounds.get(number, (0, 0)) for number in rows.column("partition").to_pylist()]
    first, end = np.asarray(limits).T
    at = np.asarray(rows.column("offset"))
    return rows.select([*PLACE, *BYTES]).filter(pa.array((first <= at) & (at < end)))


def _apart(ours: dict[str, object], original: dict[str, object] | None, where: str) -> str:
    if original is None:
        return f"the quarantine has it, and {where} holds no record there"
    name = next((name for name in BYTES if ours[name] != original[name]), None)
    return "" if name is None else f"its {name} is not the same in the quarantine and in {where}"
