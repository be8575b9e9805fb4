"""The rows of panes, and of what takes panes back: the only place where they are made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from penstock.pipelines.fold.moment import Moment
from penstock.pipelines.fold.rows import Column, arrow
from penstock.pipelines.fold.stage import ReadyStage
from penstock.pipelines.state.columns import Ints, Mask

TIMINGS = ("early", "on_time", "late")


@dataclass(frozen=True)
class About:
    """The windows that rows are about: key and bounds, when they show something, and what they showed before.

    `panes` and `on_time_panes` count the panes before this one, `records` is what the row says of elements.
    """

    names: pa.Table
    timing: Column
    final: Column
    panes: Column
    on_time_panes: Column
    records: Column

    def where(self, chosen: Mask) -> "About":
        """Some of them."""
        return self.take(np.flatnonzero(chosen))

    def take(self, chosen: Ints) -> "About":
        """Some of them, by their numbers, each as often as it is named."""
        columns = (self.timing, self.final, self.panes, self.on_time_panes, self.records)
        return About(self.names.take(pa.array(chosen)), *(column[chosen] for column in columns))


def pane_rows(
    stage: ReadyStage,
    moment: Moment,
    kind: str,
    about: About,
    values: Sequence[Column] | None,
    others: Mapping[str, pa.Array] = MappingProxyType({}),
) -> pa.Table:
    """A row for each window; without values they are null, as are columns that these rows do not have.

    `others` are columns that only panes of some kinds of windows have.
    """
    count = len(about.timing)
    index = np.where(about.timing == "early", -1, about.on_time_panes).astype(np.int32)
    columns: dict[str, pa.Array | pa.ChunkedArray] = {
        **{name: about.names.column(name) for name in about.names.column_names},
        "pane": pa.array(about.panes),
        "timing": _words(about.timing),
        "on_time_index": pa.array(index),
        "final": pa.array(about.final),
        "kind": pa.repeat(pa.scalar(kind, pa.string()), count),
        "records": pa.array(about.records),
        "batch_id": pa.array(np.full(count, moment.batch_id, np.int64)),
        "batch_clock": pa.array(np.full(count, moment.clock, np.int64)),
        "watermark": pa.array(np.full(count, moment.stream_watermark, np.int64)),
        **others,
    }
    for each, value in zip(stage.results, values or (), strict=values is not None):
        columns[each.name] = arrow(value, each.type)
    schema = stage.pane_columns
    missing = {f.name: pa.nulls(count, f.type) for f in schema if f.name not in columns}
    return pa.table([(columns | missing)[name] for name in schema.names], schema=schema)


def _words(timing: Column) -> pa.Array:
    """The timing of each row: three words, looked up, where numpy's texts would be taken over one by one."""
    early, _, late = TIMINGS
    number = np.where(timing == early, 0, np.where(timing == late, 2, 1))
    return pa.array(TIMINGS, pa.string()).take(pa.array(number))
