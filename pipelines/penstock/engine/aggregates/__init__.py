"""Aggregates: how the elements of a window become one value. Each kind is one module, found by discovery."""

from penstock.engine.aggregates.accumulator import Accumulator, AccumulatorPart, lift_elements, merge_partials
from penstock.engine.aggregates.aggregate import Aggregate, FieldAggregate
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.aggregate_output import AggregateOutput
from penstock.engine.aggregates.values_aggregate import FieldValuesAggregate, ValuesAggregate

__all__ = [
    "Accumulator",
    "AccumulatorPart",
    "Aggregate",
    "AggregateContext",
    "AggregateOutput",
    "FieldAggregate",
    "FieldValuesAggregate",
    "ValuesAggregate",
    "lift_elements",
    "merge_partials",
]
