"""Reads the open windows of the state, with their current values."""

from math import inf

import pyarrow as pa

from penstock.conformance.engines import OpenWindow
from penstock.engine.columnar import Rows, to_numpy
from penstock.engine.operators.compiled_stage import CompiledStage
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, MIN_TIMESTAMP_MS
from penstock.engine.state.sorted_run import merge_runs
from penstock.engine.state.state_tree import StateTree
from penstock.engine.windows.order_window import OrderWindow


def read_open_windows(stage: CompiledStage, state: StateTree) -> tuple[OpenWindow, ...] | None:
    """Return every open time window; None for order windows."""
    if isinstance(stage.plan.window, OrderWindow):
        return None
    state_rows = merge_runs(state.runs, includes_oldest=True) if state.runs else state.schema.empty_table()
    keys = [state_rows.column(field.name).to_pylist() for field in stage.key]
    values_by_window = compute_window_values(stage, state_rows)
    bounds = [state_rows.column(name).to_pylist() for name in ("window_start", "window_end")]
    return tuple(
        OpenWindow(
            key,
            -inf if start <= MIN_TIMESTAMP_MS + 1 else start,
            inf if end == MAX_TIMESTAMP_MS else end,
            window_values,
        )
        for *key_parts, start, end, window_values in zip(*keys, *bounds, values_by_window, strict=True)
        for key in [tuple(key_parts)]
    )


def compute_window_values(stage: CompiledStage, state_rows: pa.Table) -> list[tuple[tuple[str, object], ...]]:
    """Return the current values of each window."""
    names = [part.name for part in stage.parts]
    rows = Rows({name: to_numpy(state_rows.column(name)) for name in names}, state_rows.num_rows)
    columns = [
        [(accumulator.output, value) for value in accumulator.pane_values(rows).tolist()]
        for accumulator in stage.accumulators
    ]
    return list(zip(*columns, strict=True))
