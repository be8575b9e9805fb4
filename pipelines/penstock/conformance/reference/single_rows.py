"""Rows of operators whose windows hold one element or pane: the only pane of a window, and late records."""

from collections.abc import Iterable
from typing import Any

from penstock.conformance.reference.input_records import Instant, StageElement
from penstock.conformance.reference.output_rows import LateRow, Pane
from penstock.conformance.reference.pane_emission import ReferenceBatchTime


def build_only_pane(
    key: tuple[Any, ...],
    bounds: tuple[Instant, Instant],
    values: Iterable[tuple[str, Any]],
    batch_time: ReferenceBatchTime,
    **other_fields: Any,
) -> Pane:
    """Return the only pane of a window: an on-time insert of one record, unless other fields say so."""
    start, end = bounds
    fields = {"final": True, "kind": "insert", "records": 1, **other_fields}
    return Pane(
        key=key,
        start=start,
        end=end,
        values=tuple(values),
        pane_index=0,
        timing="on_time",
        on_time_index=0,
        batch=batch_time.batch,
        clock=batch_time.clock,
        watermark=batch_time.stream_watermark,
        **fields,
    )


def build_late_row(element: StageElement, batch_time: ReferenceBatchTime, lateness: int = 0) -> LateRow:
    """Return the late row of a record whose window is the instant of its event time."""
    end = element.time + 1
    return LateRow(
        element.address,
        element.key,
        element.time,
        element.time,
        end,
        "closed",
        batch_time.watermark_before,
        batch_time.watermark_before - (end + lateness),
        batch_time.batch,
    )
