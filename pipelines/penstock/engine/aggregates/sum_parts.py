"""What the sum and the mean share: a retractable sum of a numeric field."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.accumulator import AccumulatorPart
from penstock.engine.aggregates.aggregate import FieldAggregate
from penstock.engine.aggregates.aggregate_context import WEIGHT_COLUMN, AggregateContext
from penstock.engine.aggregates.exact_sums import add_terms, sum_terms
from penstock.engine.aggregates.field_types import refuse_column_types
from penstock.engine.aggregates.list_columns import ListMerger, to_single_entry_lists
from penstock.engine.aggregates.mergers import BIGINT_LIMIT, SumMerger
from penstock.engine.columnar import NumpyColumn, Rows, to_numpy
from penstock.engine.definition.predicates import quote_column, sql_literal
from penstock.engine.definition.sql_type_names import NON_ADDITIVE_TYPES
from penstock.engine.errors import SumOverflowError
from penstock.engine.state.header_columns import BoolArray

NON_FINITE_VALUES = {"nan": np.nan, "inf": np.inf, "negative_inf": -np.inf}
"""Non-finite values cannot be subtracted from a sum. Over changes they are counted instead."""


class AdditiveAggregate(FieldAggregate):
    """An aggregate that adds up the values of a numeric field."""

    @property
    def visible_fields(self) -> tuple[str, ...]:
        """None: a sum shows no single value."""
        return ()

    def check_column_types(self, column_types: Mapping[str, str | None], location: str) -> None:
        """Refuse a field that is known not to be a number."""
        refuse_column_types(self.field, column_types, NON_ADDITIVE_TYPES, "sum", location)


@dataclass(frozen=True)
class SumParts:
    """The state columns of a field's sum."""

    field: str
    sum_type: pa.DataType
    context: AggregateContext

    @property
    def is_retractable(self) -> bool:
        """Whether the sum is retractable: exact terms, and separate counts of non-finite values."""
        return self.context.over_changes and pa.types.is_floating(self.sum_type)

    def parts(self) -> Iterator[AccumulatorPart]:
        """Yield the columns: a number, or the terms of an exact sum and counts of non-finite values."""
        name = f"{self.context.output}_sum"
        zero: Any = Decimal(0) if pa.types.is_decimal(self.sum_type) else 0
        if self.is_retractable:
            collect_sql = f"collect_list({self._value_sql()})"
            yield AccumulatorPart(
                name, collect_sql, pa.list_(pa.float64()), ListMerger((name,), add_terms), self._lift_terms
            )
        else:
            yield AccumulatorPart(
                name,
                self._sum_sql(),
                self.sum_type,
                SumMerger(name, self._sum_limit()),
                self._lift_values,
                zero,
            )
        for suffix, number in NON_FINITE_VALUES.items() if self.is_retractable else ():
            name = f"{self.context.output}_{suffix}"
            is_number_sql = f"{quote_column(self.field)} = double('{number}')"
            sql = f"coalesce(sum(CASE WHEN {is_number_sql} THEN {WEIGHT_COLUMN} END), 0)"
            yield AccumulatorPart(
                name, sql, pa.int64(), SumMerger(name), self._make_non_finite_lift(number), 0
            )

    def _sum_limit(self) -> int:
        return (
            10 ** (self.sum_type.precision - self.sum_type.scale)
            if pa.types.is_decimal(self.sum_type)
            else BIGINT_LIMIT
        )

    def extract_sums(self, rows: Rows) -> NumpyColumn:
        """Return the sum of each window."""
        sums: NumpyColumn = rows[f"{self.context.output}_sum"]
        if not self.is_retractable:
            return sums
        totals = np.fromiter(map(sum_terms, sums.tolist()), np.float64, len(sums))
        is_present = {suffix: rows[f"{self.context.output}_{suffix}"] > 0 for suffix in NON_FINITE_VALUES}
        totals = np.where(is_present["inf"], np.inf, np.where(is_present["negative_inf"], -np.inf, totals))
        return np.where(is_present["nan"] | (is_present["inf"] & is_present["negative_inf"]), np.nan, totals)

    def _sum_sql(self) -> str:
        value = self._value_sql()
        if pa.types.is_floating(self.sum_type):
            return f"coalesce(sum({value}), cast(0 as double))"
        overflow_message = sql_literal(str(SumOverflowError(self.context.output)))
        overflow_sql = f"raise_error({overflow_message})"
        return f"coalesce(try_sum({value}), CASE WHEN count({value}) = 0 THEN 0 ELSE {overflow_sql} END)"

    def _value_sql(self) -> str:
        """Return the SQL of the value that an element adds."""
        value = quote_column(self.field)
        if pa.types.is_floating(self.sum_type):
            value = f"cast({value} as double)"
        if self.is_retractable:
            value = f"CASE WHEN abs({value}) < double('Infinity') THEN {value} END"
        return f"{WEIGHT_COLUMN} * {value}" if self.context.over_changes else value

    def _lift_values(self, elements: pa.Table) -> NumpyColumn:
        if pa.types.is_decimal(self.sum_type):
            decimals = [
                Decimal(0) if value is None else value for value in elements.column(self.field).to_pylist()
            ]
            return np.array(decimals, object) * self.context.element_weights(elements)
        values = to_numpy(elements.column(self.field).cast(self.sum_type))
        weighted: NumpyColumn = values * self.context.element_weights(elements)
        return weighted

    def _lift_terms(self, elements: pa.Table) -> NumpyColumn:
        values = to_numpy(elements.column(self.field).cast(self.sum_type))
        weighted = np.where(np.isfinite(values), values, 0) * self.context.element_weights(elements)
        return to_single_entry_lists(weighted.tolist(), (weighted != 0).tolist())

    def _make_non_finite_lift(self, number: float) -> Callable[[pa.Table], NumpyColumn]:
        def lift(elements: pa.Table) -> NumpyColumn:
            values = to_numpy(elements.column(self.field).cast(pa.float64()))
            is_match: BoolArray = np.isnan(values) if np.isnan(number) else values == number
            weighted: NumpyColumn = is_match * self.context.element_weights(elements, self.field)
            return weighted

        return lift
