"""Named numpy columns of equal length, which a batch updates in place. Converts from and to Arrow."""

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
    """A state column of a window, with its value for a new window."""

    name: str
    type: pa.DataType
    initial: Any

    def new_column(self, count: int) -> NumpyColumn:
        """Return the column for `count` new windows."""
        return np.full(count, self.initial, dtype=numpy_type(self.type))


class Rows:
    """Named columns of one length."""

    def __init__(self, columns: Mapping[str, NumpyColumn], count: int) -> None:
        self._columns = dict(columns)
        self._count = count

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def __getitem__(self, name: str) -> NumpyColumn:
        """Return a column. It is not a copy: writes to it change these rows."""
        return self._columns[name]

    def __setitem__(self, name: str, column: NumpyColumn) -> None:
        """Replace or add a column."""
        self._columns[name] = column

    def where(self, selection: npt.NDArray[Any]) -> "Rows":
        """Return copies of some rows, selected by mask or position."""
        count = int(np.count_nonzero(selection)) if selection.dtype == np.bool_ else len(selection)
        return Rows({name: column[selection] for name, column in self._columns.items()}, count)

    def to_table(self, schema: pa.Schema) -> pa.Table:
        """Return the columns of the schema as an Arrow table."""
        return pa.table([as_arrow(self._columns[field.name], field.type) for field in schema], schema=schema)


def as_arrow(column: NumpyColumn, arrow_type: pa.DataType) -> pa.Array:
    """Convert a column to Arrow. None in an object column is null, and NaN stays NaN."""
    return pa.array(column, type=arrow_type, from_pandas=False)


def numpy_type(arrow_type: pa.DataType) -> Any:
    """Return the numpy type for an Arrow type: a numeric type for numbers and booleans, object for all else."""
    if pa.types.is_boolean(arrow_type) or pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type):
        return arrow_type.to_pandas_dtype()
    return object


def empty_value(arrow_type: pa.DataType) -> Any:
    """Return the value of a column of this type where there is none."""
    return None if numpy_type(arrow_type) is object else 0


def new_rows(state_columns: Iterable[StateColumn], count: int) -> Rows:
    """Return the columns of `count` new windows."""
    return Rows({state_column.name: state_column.new_column(count) for state_column in state_columns}, count)


def rows_from_table(table: pa.Table) -> Rows:
    """Return a table's columns as mutable copies."""
    return Rows({name: to_numpy(table.column(name)) for name in table.column_names}, table.num_rows)


def to_numpy(column: pa.ChunkedArray) -> NumpyColumn:
    """Copy an Arrow column to a mutable numpy column. A null number becomes 0, any other null None."""
    dtype = numpy_type(column.type)
    if dtype is object:
        # Value by value, or numpy would unpack lists of equal length into a matrix.
        return np.fromiter(to_python_values(column), dtype=object, count=len(column))
    # astype always copies; Arrow's own buffers are read-only.
    return np.asarray(column.fill_null(0 if dtype is not np.bool_ else False)).astype(dtype)


def to_python_values(column: pa.ChunkedArray | pa.Array) -> list[Any]:
    """Return comparable Python values: lists as tuples, and every NaN as the same object."""
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
    """Convert lists to tuples by flattening the column once, which is many times faster than list by list."""
    values = to_python_values(pc.list_flatten(column))
    lengths = np.asarray(pc.list_value_length(column).fill_null(0)).astype(np.int64)
    ends = np.cumsum(lengths)
    spans = zip((ends - lengths).tolist(), ends.tolist(), column.is_valid().to_pylist(), strict=True)
    return [tuple(values[begin:end]) if is_valid else None for begin, end, is_valid in spans]
