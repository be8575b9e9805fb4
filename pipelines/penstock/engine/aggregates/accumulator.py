"""Accumulators: the state columns of an aggregate for each window, and how two of them merge.

An accumulator consists of parts. A part is built in three equivalent ways: by Spark from many records, by
`lift_elements` from a single element, and by a merge from two parts. So partials of a batch, state rows and
elements of an order window all merge with `merge_partials`, in any grouping.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Context, localcontext
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from penstock.engine.columnar import NumpyColumn, Rows, StateColumn
from penstock.engine.state.header_columns import Int64Array

DECIMAL_CONTEXT = Context(prec=100)
"""Precision for sums of any decimals; Python's default is 28 digits."""


class PartialMerger(Protocol):
    """Merges some columns of partials into the same columns of windows."""

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Merge partials into windows; `windows` has the row of each partial.

        Values in a row are replaced, never changed in place, because the last pane may share them.
        """


@dataclass(frozen=True)
class AccumulatorPart:
    """One column of an accumulator: the Spark SQL that builds it, its type, and its merger.

    `lift` builds it from elements, one value for each. Where Spark has no suitable aggregate, the SQL returns
    a value of `raw_type`, and `finish_raw` turns it into the part.
    """

    name: str
    sql: str
    type: pa.DataType
    merger: PartialMerger
    lift: Callable[[pa.Table], NumpyColumn] = field(compare=False)
    initial: Any = None
    raw_type: pa.DataType | None = None
    finish_raw: Callable[[pa.Array], pa.Array] | None = field(default=None, compare=False)

    @property
    def state_column(self) -> StateColumn:
        """The state column, with its initial value."""
        return StateColumn(self.name, self.type, self.initial)


@dataclass(frozen=True)
class Accumulator:
    """An aggregate: its parts, and its output. `count_column` names the part that counts non-null values."""

    output: str
    type: pa.DataType
    parts: tuple[AccumulatorPart, ...]
    extract_output: Callable[[Rows], NumpyColumn] = field(compare=False)
    count_column: str | None = None

    def pane_values(self, rows: Rows) -> NumpyColumn:
        """Return the pane's value for each window, None where there is no value."""
        with np.errstate(invalid="ignore", over="ignore"):
            shown = self.extract_output(rows)
        if self.count_column is None:
            return shown
        values = shown.astype(object)
        values[rows[self.count_column] == 0] = None
        return values


def merge_partials(parts: Sequence[AccumulatorPart], rows: Rows, windows: Int64Array, incoming: Rows) -> None:
    """Merge partials into windows; `windows` has the row of each partial.

    Partials merge in their order, so floating-point sums are reproducible. Parts that share a merger are
    merged in one call, in the order of the parts.
    """
    # Infinities that cancel out are not an error: they make NaN, as in Spark.
    with np.errstate(invalid="ignore", over="ignore"), localcontext(DECIMAL_CONTEXT):
        for merger in dict.fromkeys(part.merger for part in parts):
            merger.merge(rows, windows, incoming)


def lift_elements(parts: Sequence[AccumulatorPart], elements: pa.Table) -> Rows:
    """Return one partial per element.

    Elements have their fields, `_time`, `_topic`, `_partition` and `_offset`.
    """
    with localcontext(DECIMAL_CONTEXT):
        return Rows({part.name: part.lift(elements) for part in parts}, elements.num_rows)
