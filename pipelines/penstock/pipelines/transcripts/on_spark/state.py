"""The windows that the state holds, with the values that they would show."""

from math import inf

import pyarrow as pa

from penstock.pipelines.fold.rows import Rows, numpy_column
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.plan.windows import SlidingOrder, Tumbling
from penstock.pipelines.state.columns import BEFORE_ALL, NEVER
from penstock.pipelines.state.run import merge
from penstock.pipelines.state.tree import Tree
from penstock.pipelines.transcripts.engine import OpenWindow


def open_windows(stage: ReadyStage, state: Tree) -> tuple[OpenWindow, ...] | None:
    """Return every window of time that is kept; None where windows go by the order of records."""
    if isinstance(stage.plan.window, Tumbling | SlidingOrder):
        return None
    kept = merge(state.runs, oldest=True) if state.runs else state.schema.empty_table()
    keys = [kept.column(field.name).to_pylist() for field in stage.key]
    shown = values(stage, kept)
    bounds = [kept.column(name).to_pylist() for name in ("window_start", "window_end")]
    return tuple(
        OpenWindow(key, -inf if start <= BEFORE_ALL + 1 else start, inf if end == NEVER else end, said)
        for *key_parts, start, end, said in zip(*keys, *bounds, shown, strict=True)
        for key in [tuple(key_parts)]
    )


def values(stage: ReadyStage, kept: pa.Table) -> list[tuple[tuple[str, object], ...]]:
    """Return what each window would show."""
    names = [part.name for part in stage.parts]
    rows = Rows({name: numpy_column(kept.column(name)) for name in names}, kept.num_rows)
    columns = [[(each.output, value) for value in each.values(rows).tolist()] for each in stage.accumulators]
    return list(zip(*columns, strict=True))
