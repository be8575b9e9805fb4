"""Maps each aggregate of the plan to its accumulator builder. Add one line for each kind."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.approximate_distinct import build_approximate_distinct
from penstock.engine.aggregates.collect_distinct import build_collect, build_exact_distinct
from penstock.engine.aggregates.first_last import build_first_last
from penstock.engine.aggregates.join_members import build_members
from penstock.engine.aggregates.min_max import build_min_max
from penstock.engine.aggregates.multiset import build_multiset
from penstock.engine.aggregates.quantiles import build_quantiles
from penstock.engine.aggregates.sums import build_count, build_mean, build_sum
from penstock.engine.aggregates.top_n import build_top_n
from penstock.engine.aggregates.user_combiner import build_custom
from penstock.engine.plan import aggregates as plan

AccumulatorBuilder = Callable[[plan.AggregateOutput, Any, AggregateContext], Accumulator]

ACCUMULATOR_BUILDERS: Mapping[type[Any], AccumulatorBuilder] = {
    plan.Count: build_count,
    plan.Sum: build_sum,
    plan.Mean: build_mean,
    plan.Min: build_min_max,
    plan.Max: build_min_max,
    plan.First: build_first_last,
    plan.Last: build_first_last,
    plan.Distinct: lambda output, aggregate, context: (
        build_exact_distinct if aggregate.exact else build_approximate_distinct
    )(output, aggregate, context),
    plan.TopN: build_top_n,
    plan.Quantiles: build_quantiles,
    plan.Collect: build_collect,
    plan.Custom: build_custom,
    plan.JoinMembers: build_members,
}


def build_accumulator(
    output: plan.AggregateOutput,
    field_types: Mapping[str, pa.DataType],
    *,
    over_changes: bool = False,
    has_several_inputs: bool = False,
) -> Accumulator:
    """Return the accumulator of an output column over fields of these types.

    With `over_changes`, elements have a weight, and -1 retracts an element. An aggregate that cannot retract
    then stores all of its values. With `has_several_inputs`, the input's name is part of the order of
    elements.
    """
    aggregate = output.aggregate
    accumulator = ACCUMULATOR_BUILDERS[type(aggregate)](
        output, aggregate, AggregateContext(field_types, over_changes, has_several_inputs)
    )
    keeps_values = over_changes and not plan.can_retract(aggregate)
    return (
        build_multiset(output, accumulator.type, AggregateContext(field_types, over_changes))
        if keeps_values
        else accumulator
    )
