"""Windows in the hands of the fold: a few columns of equal length, changed in place while a batch is folded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Column = npt.NDArray[Any]


@dataclass(frozen=True)
class Slot:
    """A column that somebody keeps for each window, and what it holds for a new one."""

    name: str
    type: pa.DataType
    initial: Any

    def fresh(self, count: int) -> Column:
        """The column for `count` new windows."""
        return np.full(count, self.initial, dtype=numpy_type(self.type))


class Rows:
    """Named columns of one length."""

    def __init__(self, columns: Mapping[str, Column], count: int) -> None:
        self._columns = dict(columns)
        self._count = count

    def __len__(self) -> int:
        """How many windows there are."""
        return self._count

    def __getitem__(self, name: str) -> Column:
        """One column; what is written into it stays."""
        return self._columns[name]

    def __setitem__(self, name: str, column: Column) -> None:
        """Replace or add a column."""
        self._columns[name] = column

    def where(self, chosen: npt.NDArray[Any]) -> "Rows":
        """Some of the windows, by mask or position, as columns of their own."""
        count = int(np.count_nonzero(chosen)) if chosen.dtype == np.bool_ else len(chosen)
        return Rows({name: column[chosen] for name, column in self._columns.items()}, count)

    def table(self, schema: pa.Schema) -> pa.Table:
        """The columns that the schema names, as Arrow."""
        return pa.table([arrow(self._columns[f.name], f.type) for f in schema], schema=schema)


def arrow(column: Column, kind: pa.DataType) -> pa.Array:
    """A column as Arrow; None in a column of objects is null, and NaN is NaN."""
    return pa.array(column, type=kind, from_pandas=False)


def numpy_type(kind: pa.DataType) -> Any:
    """What numpy keeps values of an Arrow type in: numbers as they are, all else as objects."""
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return kind.to_pandas_dtype()
    return object


def empty_of(kind: pa.DataType) -> Any:
    """What stands in a column of this type where there is no value."""
    return None if numpy_type(kind) is object else 0


def fresh(slots: Iterable[Slot], count: int) -> Rows:
    """Columns for `count` windows that nothing was kept of before."""
    return Rows({slot.name: slot.fresh(count) for slot in slots}, count)


def known_rows(table: pa.Table) -> Rows:
    """A table's columns, to be changed."""
    return Rows({name: numpy_column(table.column(name)) for name in table.column_names}, table.num_rows)


def numpy_column(column: pa.ChunkedArray) -> Column:
    """An Arrow column as a numpy column of one's own, to be changed; a null number is 0, any other null None."""
    kind = numpy_type(column.type)
    if kind is object:
        # One by one, or numpy would take lists of one length apart.
        return np.fromiter(python_values(column), dtype=object, count=len(column))
    # astype makes a copy always; what Arrow itself gives may not be written into.
    return np.asarray(column.fill_null(0 if kind is not np.bool_ else False)).astype(kind)


def python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Values as Python has them, so that equal ones are found equal: lists as tuples, any NaN as the same one."""
    if pa.types.is_list(column.type):
        return _tuples(column)
    if not column.null_count and (pa.types.is_integer(column.type) or pa.types.is_float64(column.type)):
        plain = np.asarray(column)
        missing = np.isnan(plain) if pa.types.is_float64(column.type) else np.empty(0, bool)
        found: list[Any] = plain.tolist()
        return [nan if value != value else value for value in found] if missing.any() else found
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [nan if value != value else value for value in values]
    return values


def _tuples(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Lists as tuples: all their values are taken out at once, which is many times quicker than list by list."""
    values = python_values(pc.list_flatten(column))
    lengths = np.asarray(pc.list_value_length(column).fill_null(0)).astype(np.int64)
    ends = np.cumsum(lengths)
    spans = zip((ends - lengths).tolist(), ends.tolist(), column.is_valid().to_pylist(), strict=True)
    return [tuple(values[begin:end]) if there else None for begin, end, there in spans]
