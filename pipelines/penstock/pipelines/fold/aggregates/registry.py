"""From an aggregate of the plan to the accumulator that computes it: each kind has its line here."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from penstock.pipelines.fold.aggregates.accumulator import Accumulator
from penstock.pipelines.fold.aggregates.bags import bag
from penstock.pipelines.fold.aggregates.cardinality import approximate
from penstock.pipelines.fold.aggregates.collecting import collect, distinct
from penstock.pipelines.fold.aggregates.custom import custom
from penstock.pipelines.fold.aggregates.ends import end
from penstock.pipelines.fold.aggregates.extremes import extreme
from penstock.pipelines.fold.aggregates.members import members
from penstock.pipelines.fold.aggregates.quantiles import quantiles
from penstock.pipelines.fold.aggregates.ranking import top
from penstock.pipelines.fold.aggregates.setting import Setting
from penstock.pipelines.fold.aggregates.sums import count, mean, sum_
from penstock.pipelines.plan import aggregates as plan

Maker = Callable[[plan.Output, Any, Setting], Accumulator]

MAKERS: Mapping[type[Any], Maker] = {
    plan.Count: count,
    plan.Sum: sum_,
    plan.Mean: mean,
    plan.Min: extreme,
    plan.Max: extreme,
    plan.First: end,
    plan.Last: end,
    plan.Distinct: lambda output, of, setting: (distinct if of.exact else approximate)(output, of, setting),
    plan.TopN: top,
    plan.Quantiles: quantiles,
    plan.Collect: collect,
    plan.Custom: custom,
    plan.Members: members,
}


def accumulator(
    output: plan.Output, types: Mapping[str, pa.DataType], *, changes: bool = False, several: bool = False
) -> Accumulator:
    """The accumulator for an output column over fields of these types.

    `changes`: elements have a weight, and one of -1 takes an element back; an aggregate that cannot compute this
    from what it has keeps the values that it needs. `several`: elements are of several inputs, whose names then
    belong to their order.
    """
    of = output.of
    made = MAKERS[type(of)](output, of, Setting(types, changes, several))
    keeps_values = changes and not plan.takes_back(of)
    return bag(output, made.type, Setting(types, changes)) if keeps_values else made
