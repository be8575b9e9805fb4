"""Build the rows of panes and of retractions. No other module builds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from penstock.engine.batch_time import BatchTime
from penstock.engine.columnar import NumpyColumn, as_arrow
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.state.header_columns import BoolArray, Int64Array

PANE_TIMINGS = ("early", "on_time", "late")


@dataclass(frozen=True)
class PaneHeaders:
    """The headers of pane rows: window, timing, and what the window showed before.

    `earlier_panes` and `earlier_on_time_panes` count the panes before this one. `record_counts` fills the
    column `records`.
    """

    window_table: pa.Table
    timing: NumpyColumn
    is_final: NumpyColumn
    earlier_panes: NumpyColumn
    earlier_on_time_panes: NumpyColumn
    record_counts: NumpyColumn

    def where(self, is_chosen: BoolArray) -> "PaneHeaders":
        """Return the selected headers."""
        return self.take(np.flatnonzero(is_chosen))

    def take(self, positions: Int64Array) -> "PaneHeaders":
        """Return the headers at these positions, each as often as it occurs."""
        columns = (
            self.timing,
            self.is_final,
            self.earlier_panes,
            self.earlier_on_time_panes,
            self.record_counts,
        )
        return PaneHeaders(
            self.window_table.take(pa.array(positions)), *(column[positions] for column in columns)
        )


def make_pane_rows(
    stage: CompiledStage,
    batch_time: BatchTime,
    pane_kind: str,
    headers: PaneHeaders,
    values: Sequence[NumpyColumn] | None,
    extra_columns: Mapping[str, pa.Array] = MappingProxyType({}),
) -> pa.Table:
    """Build one row for each window.

    Without `values`, the value columns are null, as are all columns not given.

    `extra_columns` are columns that only the panes of some window types have.
    """
    count = len(headers.timing)
    on_time_index = np.where(headers.timing == "early", -1, headers.earlier_on_time_panes).astype(np.int32)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        **{name: headers.window_table.column(name) for name in headers.window_table.column_names},
        "pane": pa.array(headers.earlier_panes),
        "timing": _to_timing_column(headers.timing),
        "on_time_index": pa.array(on_time_index),
        "final": pa.array(headers.is_final),
        "kind": pa.repeat(pa.scalar(pane_kind, pa.string()), count),
        "records": pa.array(headers.record_counts),
        "batch_id": pa.array(np.full(count, batch_time.batch_id, np.int64)),
        "batch_clock": pa.array(np.full(count, batch_time.clock, np.int64)),
        "watermark": pa.array(np.full(count, batch_time.stream_watermark, np.int64)),
        **extra_columns,
    }
    for field, value in zip(stage.result_fields, values or (), strict=values is not None):
        columns[field.name] = as_arrow(value, field.type)
    schema = stage.pane_schema
    missing = {
        schema_field.name: pa.nulls(count, schema_field.type)
        for schema_field in schema
        if schema_field.name not in columns
    }
    return pa.table([(columns | missing)[name] for name in schema.names], schema=schema)


def _to_timing_column(timing: NumpyColumn) -> pa.Array:
    """Convert timings to Arrow by lookup in three constants, which is faster than converting each string."""
    early, _, late = PANE_TIMINGS
    timing_index = np.where(timing == early, 0, np.where(timing == late, 2, 1))
    return pa.array(PANE_TIMINGS, pa.string()).take(pa.array(timing_index))
