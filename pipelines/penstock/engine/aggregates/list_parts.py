"""Parts that are lists: one column for each component of the entries of a window."""

from collections.abc import Sequence

import pyarrow as pa

from penstock.engine.aggregates.accumulator import AccumulatorPart
from penstock.engine.aggregates.aggregate_context import flag_valid
from penstock.engine.aggregates.element_order import EntryColumn
from penstock.engine.aggregates.list_columns import ListMerger, to_single_entry_lists
from penstock.engine.columnar import NumpyColumn, to_python_values


def name_list_columns(output: str, entry_columns: Sequence[EntryColumn]) -> tuple[str, ...]:
    """Return the names of the lists of an output, one for each column of its entries."""
    return tuple(f"{output}_{entry_column.name}s" for entry_column in entry_columns)


def make_entry_parts(
    list_sql: str,
    entry_columns: Sequence[EntryColumn],
    source_columns: Sequence[str],
    merger: ListMerger,
    field: str,
) -> tuple[AccumulatorPart, ...]:
    """Return the parts of a list of structs, one for each column of its entries."""
    return tuple(
        make_list_part(name, f"{list_sql}.{entry_column.name}", entry_column.type, merger, source, field)
        for name, entry_column, source in zip(merger.names, entry_columns, source_columns, strict=True)
    )


def make_list_part(
    name: str, sql: str, value_type: pa.DataType, merger: ListMerger, column: str, field: str
) -> AccumulatorPart:
    """Return a list part with a column's values of the elements that have a value in `field`."""

    def lift(elements: pa.Table) -> NumpyColumn:
        return to_single_entry_lists(
            to_python_values(elements.column(column)), flag_valid(elements, field).tolist()
        )

    return AccumulatorPart(name, sql, pa.list_(value_type), merger, lift)
