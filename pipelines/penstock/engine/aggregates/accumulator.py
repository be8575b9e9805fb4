"""What an aggregate is to the fold: columns that are kept for each window, and how two of them become one.

An accumulator is made of parts. A part comes into being in three ways that mean the same: Spark makes it of many
records, `lift_elements` makes it of each single element, and a merge makes it of two. So partials of a batch, rows
of the state and elements of an order window are all merged by `merge_partials`, in any bracketing.
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
"""Room for sums of any decimals; Python by itself rounds to 28 digits."""


class PartialMerger(Protocol):
    """How some columns of partials become part of the same columns of windows."""

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Merge partials into windows; `windows` says to which row each of them belongs.

        What a row holds is replaced, never changed in place: it may have been kept as last shown.
        """


@dataclass(frozen=True)
class AccumulatorPart:
    """One column of an accumulator: the Spark SQL that makes it, its type, and how two of it merge.

    `lift` makes it of elements, one for each. `finish` turns what the SQL gives into the part, where Spark has
    no aggregate that gives it; what the SQL gives is then of type `raw`.
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
        """The column in the state, empty at first."""
        return StateColumn(self.name, self.type, self.initial)


@dataclass(frozen=True)
class Accumulator:
    """An aggregate: its parts, and what is shown of them. `present` names the part that counts values."""

    output: str
    type: pa.DataType
    parts: tuple[AccumulatorPart, ...]
    extract_output: Callable[[Rows], NumpyColumn] = field(compare=False)
    count_column: str | None = None

    def pane_values(self, rows: Rows) -> NumpyColumn:
        """What a pane shows for each window, None where there was no value."""
        with np.errstate(invalid="ignore", over="ignore"):
            shown = self.extract_output(rows)
        if self.count_column is None:
            return shown
        values = shown.astype(object)
        values[rows[self.count_column] == 0] = None
        return values


def merge_partials(parts: Sequence[AccumulatorPart], rows: Rows, windows: Int64Array, incoming: Rows) -> None:
    """Merge partials into windows; `windows` says to which row each of them belongs.

    Partials are taken in their order, so sums of floating numbers come out the same again. Parts that share a
    merge are merged by it at once, in the order in which the parts name it.
    """
    # Infinities that cancel out are no error here: they make NaN, as in Spark.
    with np.errstate(invalid="ignore", over="ignore"), localcontext(DECIMAL_CONTEXT):
        for merger in dict.fromkeys(part.merger for part in parts):
            merger.merge(rows, windows, incoming)


def lift_elements(parts: Sequence[AccumulatorPart], elements: pa.Table) -> Rows:
    """A partial for each element: its fields, `_time`, and its address `_topic`, `_partition`, `_offset`."""
    with localcontext(DECIMAL_CONTEXT):
        return Rows({part.name: part.lift(elements) for part in parts}, elements.num_rows)
