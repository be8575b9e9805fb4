"""Quantiles: the values at ranks, approximate by a sketch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from typing import Any, ClassVar

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.field_types import refuse_column_types, require_measurable
from penstock.engine.aggregates.kll_quantiles import build_kll_quantiles
from penstock.engine.aggregates.list_columns import nan_last_key
from penstock.engine.aggregates.values_aggregate import FieldValuesAggregate
from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.phrases import join_phrases
from penstock.engine.definition.sql_type_names import NON_NUMBER_TYPES


@dataclass(frozen=True)
class Quantiles(FieldValuesAggregate):
    """Approximate values at the given ranks (0 to 1), by a sketch of parameter `k`; exact up to k values."""

    function_name: ClassVar[str] = "quantiles"

    ranks: tuple[float, ...]
    k: int = 200

    def __post_init__(self) -> None:
        super().__post_init__()
        are_numbers = all(isinstance(rank, int | float) for rank in self.ranks)
        are_in_range = are_numbers and len(self.ranks) > 0 and all(0 <= rank <= 1 for rank in self.ranks)
        fix = "Give ranks from 0 to 1, as in 0.5"
        require(are_in_range, "aggregate.quantiles.ranks", self.ranks, fix)
        is_valid_size = isinstance(self.k, int) and 8 <= self.k <= 65_535
        require(is_valid_size, "aggregate.quantiles.k", self.k, "Give 8 to 65535")

    @property
    def is_reproducible(self) -> bool:
        """False: the sketch is randomized."""
        return False

    @property
    def visible_fields(self) -> tuple[str, ...]:
        """None: a quantile counts as a statistic of many values."""
        return ()

    def describe(self, *, panes: bool = False) -> str:
        """Describe the ranks. Over panes all values are stored, so that they are exact."""
        approximation_note = "" if panes else ", approximate (KLL)"
        noun = "quantile" if len(self.ranks) == 1 else "quantiles"
        ranks = join_phrases([f"{rank:g}" for rank in self.ranks])
        return f"{noun} {ranks} of {self.field}{approximation_note}"

    def describe_state(self) -> str:
        """Describe the size of the sketch."""
        return f"a sketch of about {self.k} values per level"

    def check_column_types(self, column_types: Mapping[str, str | None], location: str) -> None:
        """Refuse a field that is known to be neither a number nor a date or timestamp."""
        refuse_column_types(self.field, column_types, NON_NUMBER_TYPES, "quantiles", location)

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of a list of the field; quantiles of decimals are floats."""
        field_type = require_measurable(self.field, context)
        return pa.list_(pa.float64() if pa.types.is_decimal(field_type) else field_type)

    def build_compact(self, context: AggregateContext) -> Accumulator:
        """Build the sketch."""
        return build_kll_quantiles(context, self.field, self.ranks, self.k, self.result_type(context))

    def from_values(self, values: Sequence[Any]) -> Any:
        """Return, for each rank, the least value with at least that share of values at or below it."""
        if not values:
            return (None,) * len(self.ranks)
        ordered = sorted(values, key=nan_last_key)
        selected = [ordered[max(ceil(share * len(ordered)), 1) - 1] for share in self.ranks]
        return tuple(float(value) if isinstance(value, Decimal) else value for value in selected)


@keyword(
    "quantiles",
    synonyms=(
        "percentile",
        "percentiles",
        "quantile",
        "median",
        "approxpercentile",
        "percentileapprox",
        "approxquantile",
    ),
)
def quantiles(field: str, *ranks: float, k: int = 200) -> Quantiles:
    """Approximate the values at some ranks with a KLL sketch.

    Args:
        field: the name of a numeric field.
        ranks: numbers from 0 to 1; 0.5 is the median.
        k: the size of the sketch. A larger one is more exact.

    Example:
        aggregate(latency=quantiles("latency", 0.5, 0.99))

    Not promised: exact values, or equal values in a repeated run. The audit does not compare them.
    """
    return Quantiles(field, ranks, k)
