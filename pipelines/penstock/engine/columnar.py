"""Windows in the hands of the fold: a few columns of equal length, changed in place while a batch is folded."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

NumpyColumn = npt.NDArray[Any]


@dataclass(frozen=True)
class StateColumn:
    """A column that somebody keeps for each window, and what it holds for a new one."""

    name: str
    type: pa.DataType
    initial: Any

    def new_column(self, count: int) -> NumpyColumn:
        """The column for `count` new windows."""
        return np.full(count, self.initial, dtype=numpy_type(self.type))


class Rows:
    """Named columns of one length."""

    def __init__(self, columns: Mapping[str, NumpyColumn], count: int) -> None:
        self._columns = dict(columns)
        self._count = count

    def __len__(self) -> int:
        """How many windows there are."""
        return self._count

    def __getitem__(self, name: str) -> NumpyColumn:
        """One column; what is written into it stays."""
        return self._columns[name]

    def __setitem__(self, name: str, column: NumpyColumn) -> None:
        """Replace or add a column."""
        self._columns[name] = column

    def where(self, selection: npt.NDArray[Any]) -> "Rows":
        """Some of the windows, by mask or position, as columns of their own."""
        count = int(np.count_nonzero(selection)) if selection.dtype == np.bool_ else len(selection)
        return Rows({name: column[selection] for name, column in self._columns.items()}, count)

    def to_table(self, schema: pa.Schema) -> pa.Table:
        """The columns that the schema names, as Arrow."""
        return pa.table([as_arrow(self._columns[field.name], field.type) for field in schema], schema=schema)


def as_arrow(column: NumpyColumn, arrow_type: pa.DataType) -> pa.Array:
    """A column as Arrow; None in a column of objects is null, and NaN is NaN."""
    return pa.array(column, type=arrow_type, from_pandas=False)


def numpy_type(arrow_type: pa.DataType) -> Any:
    """What numpy keeps values of an Arrow type in: numbers as they are, all else as objects."""
    if pa.types.is_boolean(arrow_type) or pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type):
        return arrow_type.to_pandas_dtype()
    return object


def empty_value(arrow_type: pa.DataType) -> Any:
    """What stands in a column of this type where there is no value."""
    return None if numpy_type(arrow_type) is object else 0


def new_rows(state_columns: Iterable[StateColumn], count: int) -> Rows:
    """Columns for `count` windows that nothing was kept of before."""
    return Rows({state_column.name: state_column.new_column(count) for state_column in state_columns}, count)


def rows_from_table(table: pa.Table) -> Rows:
    """A table's columns, to be changed."""
    return Rows({name: to_numpy(table.column(name)) for name in table.column_names}, table.num_rows)


def to_numpy(column: pa.ChunkedArray) -> NumpyColumn:
    """An Arrow column as a numpy column of one's own, to be changed; a null number is 0, any other null None."""
    dtype = numpy_type(column.type)
    if dtype is object:
        # One by one, or numpy would take lists of one length apart.
        return np.fromiter(to_python_values(column), dtype=object, count=len(column))
    # astype makes a copy always; what Arrow itself gives may not be written into.
    return np.asarray(column.fill_null(0 if dtype is not np.bool_ else False)).astype(dtype)


def to_python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Values as Python has them, so that equal ones are found equal: lists as tuples, any NaN as the same one."""
    if pa.types.is_list(column.type):
        return _lists_to_tuples(column)
    if not column.null_count and (pa.types.is_integer(column.type) or pa.types.is_float64(column.type)):
        plain = np.asarray(column)
        is_nan = np.isnan(plain) if pa.types.is_float64(column.type) else np.empty(0, bool)
        plain_values: list[Any] = plain.tolist()
        return [nan if value != value else value for value in plain_values] if is_nan.any() else plain_values
    values: list[Any] = column.to_pylist()
    if pa.types.is_floating(column.type):
        return [nan if value != value else value for value in values]
    return values


def _lists_to_tuples(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Lists as tuples: all their values are taken out at once, which is many times quicker than list by list."""
    values = to_python_values(pc.list_flatten(column))
    lengths = np.asarray(pc.list_value_length(column).fill_null(0)).astype(np.int64)
    ends = np.cumsum(lengths)
    spans = zip((ends - lengths).tolist(), ends.tolist(), column.is_valid().to_pylist(), strict=True)
    return [tuple(values[begin:end]) if is_valid else None for begin, end, is_valid in spans]
