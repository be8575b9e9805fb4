"""The state of user-defined combiners, which are called once for all groups, over Arrow."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart
from penstock.engine.aggregates.aggregate_context import WEIGHT_COLUMN, AggregateContext
from penstock.engine.aggregates.element_order import sql_struct
from penstock.engine.aggregates.list_columns import ListEntry, to_object_column
from penstock.engine.columnar import NumpyColumn, Rows, to_python_values
from penstock.engine.definition.predicates import quote_column
from penstock.engine.definition.user_functions import Combiner
from penstock.engine.errors import DefinitionError
from penstock.engine.state.header_columns import Int64Array
from penstock.engine.user_tracebacks import wrap_user_error

ChangeSign = Literal["", ">", "<"]
"""Which elements go into a part: all, added ones (>), or retracted ones (<)."""


def build_combiner_columns(
    context: AggregateContext, fields: Sequence[str], combiner: Combiner
) -> Accumulator:
    """Build a combiner's partials. Retracted elements are combined separately and subtracted for the pane."""
    combiner_column = _CombinerColumn(context.output, combiner)
    signs: tuple[ChangeSign, ...] = (">", "<") if context.over_changes else ("",)
    parts = [_build_part(combiner_column, fields, context, sign) for sign in signs]

    def show(rows: Rows) -> NumpyColumn:
        no_elements = make_elements((), fields, context)
        empty_partial = combiner_column.add(no_elements, np.empty(0, np.int64), 1)
        signed_partials = [combiner_column.decode_partials(rows[part.name], empty_partial) for part in parts]
        partials = (
            _call_user_code("subtract", combiner, lambda: combiner.subtract(*signed_partials))
            if context.over_changes
            else signed_partials[0]
        )
        raw_result = _call_user_code("result", combiner, lambda: combiner.result(partials))
        result = combiner_column.check_result("result", raw_result, combiner.result_type, len(rows))
        return to_object_column(to_python_values(result))

    return Accumulator(context.output, combiner.result_type, tuple(parts), show)


def make_elements(
    elements: Sequence[ListEntry], fields: Sequence[str], context: AggregateContext
) -> pa.Table:
    """Return elements, each a tuple of the fields, as the table that a combiner gets."""
    schema = pa.schema([pa.field(name, context.field_types[name]) for name in fields])
    columns = zip(*elements, strict=True) if elements else [()] * len(fields)
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)], schema
    )


@dataclass(frozen=True)
class _CombinerColumn:
    """A combiner and its output column. Each partial is stored in a list of one, so that null is unambiguous."""

    output: str
    combiner: Combiner

    def add(self, values: pa.Table, groups: Int64Array, count: int) -> pa.Array:
        partials = _call_user_code("add", self.combiner, lambda: self.combiner.add(values, groups, count))
        return self.check_result("add", partials, self.combiner.partial_type, count)

    def merge(self, partials: pa.Array, groups: Int64Array, count: int) -> pa.Array:
        merged = _call_user_code("merge", self.combiner, lambda: self.combiner.merge(partials, groups, count))
        return self.check_result("merge", merged, self.combiner.partial_type, count)

    def decode_partials(self, column: NumpyColumn, empty_partial: pa.Array | None = None) -> pa.Array:
        """Return a column's partials. A row without elements is null, or `empty_partial` if given."""
        (empty_value,) = [None] if empty_partial is None else to_python_values(empty_partial)
        values = [empty_value if encoded is None else encoded[0] for encoded in column.tolist()]
        return pa.array(values, self.combiner.partial_type)

    def check_result(
        self, function_name: str, returned: pa.Array, expected_type: pa.DataType, expected_count: int
    ) -> pa.Array:
        """Raise DefinitionError for a result of the wrong type or length, before it reaches the state."""
        array = returned.combine_chunks() if isinstance(returned, pa.ChunkedArray) else returned
        if array.type != expected_type or len(array) != expected_count:
            raise DefinitionError(
                f"aggregate.{self.output}",
                f"{function_name} of {type(self.combiner).__name__} returned {len(array)} values of {array.type}",
                f"Return {expected_count} values of type {expected_type}, one for each group",
            )
        return array


@dataclass(frozen=True)
class _CombinerMerger:
    """A column of partials, merged by the combiner."""

    name: str
    combiner_column: _CombinerColumn = field(compare=False)

    def merge(self, rows: Rows, windows: Int64Array, incoming: Rows) -> None:
        """Merge incoming partials into stored ones, in one call for all windows."""
        touched_windows, groups = np.unique(windows, return_inverse=True)
        all_partials = np.concatenate([rows[self.name][touched_windows], incoming[self.name]])
        groups = np.concatenate([np.arange(len(touched_windows)), groups])
        merged = self.combiner_column.merge(
            self.combiner_column.decode_partials(all_partials), groups, len(touched_windows)
        )
        rows[self.name][touched_windows] = _encode_partials(merged)


def _build_part(
    combiner_column: _CombinerColumn, fields: Sequence[str], context: AggregateContext, sign: ChangeSign
) -> AccumulatorPart:
    name = f"{combiner_column.output}_{'retracted' if sign == '<' else 'partial'}"
    element_sql = sql_struct(
        *(f"{quote_column(field_name)} AS {quote_column(field_name)}" for field_name in fields)
    )
    chosen_sql = f"CASE WHEN {WEIGHT_COLUMN} {sign} 0 THEN {element_sql} END" if sign else element_sql

    def lift(elements: pa.Table) -> NumpyColumn:
        weights = context.element_weights(elements)
        is_chosen = np.ones(len(weights), bool) if not sign else weights > 0 if sign == ">" else weights < 0
        chosen_elements = elements.select(list(fields)).filter(pa.array(is_chosen))
        partials = _encode_partials(
            combiner_column.add(chosen_elements, np.flatnonzero(is_chosen), len(weights))
        )
        partials[~is_chosen] = None
        return partials

    return AccumulatorPart(
        name,
        f"collect_list({chosen_sql})",
        pa.list_(combiner_column.combiner.partial_type),
        _CombinerMerger(name, combiner_column),
        lift,
        raw_type=pa.list_(
            pa.struct([pa.field(field_name, context.field_types[field_name]) for field_name in fields])
        ),
        finish_raw=_make_raw_finisher(combiner_column),
    )


def _make_raw_finisher(combiner_column: _CombinerColumn) -> Callable[[pa.Array], pa.Array]:
    """Return a function that combines groups, each given as a list of structs."""

    def finish(groups: pa.Array) -> pa.Array:
        elements = pa.Table.from_struct_array(groups.flatten())
        parents = pc.list_parent_indices(groups).to_numpy()
        partials = combiner_column.add(elements, parents, len(groups))
        return pa.array(_encode_partials(partials), pa.list_(combiner_column.combiner.partial_type))

    return finish


def _call_user_code(function_name: str, combiner: Combiner, call: Callable[[], pa.Array]) -> pa.Array:
    """Call user code, and wrap its errors as UserCodeError."""
    try:
        return call()
    except Exception as error:
        raise wrap_user_error(f"{function_name} of {type(combiner).__name__}", error) from error


def _encode_partials(partials: pa.Array) -> NumpyColumn:
    return to_object_column(
        [None if partial is None else (partial,) for partial in to_python_values(partials)]
    )
