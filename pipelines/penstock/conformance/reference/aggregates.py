"""Computes aggregates over the elements of a pane, from scratch each time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.conformance.reference.changelog import value_sort_key
from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.number_semantics import canonicalize, sort_key, sum_exactly
from penstock.engine.aggregates import Aggregate, AggregateOutput
from penstock.engine.aggregates.collect import Collect
from penstock.engine.aggregates.count import Count
from penstock.engine.aggregates.custom import Custom
from penstock.engine.aggregates.distinct import Distinct
from penstock.engine.aggregates.element_order import ValueOrder
from penstock.engine.aggregates.first import First
from penstock.engine.aggregates.join_members import JoinMembers
from penstock.engine.aggregates.last import Last
from penstock.engine.aggregates.max import Max
from penstock.engine.aggregates.mean import Mean
from penstock.engine.aggregates.min import Min
from penstock.engine.aggregates.of_input import OfInput
from penstock.engine.aggregates.quantiles import Quantiles
from penstock.engine.aggregates.sum import Sum
from penstock.engine.aggregates.top_n import TopN


def compute_columns(
    outputs: Iterable[AggregateOutput], elements: Sequence[StageElement]
) -> tuple[tuple[str, Any], ...]:
    """Return the columns of a pane over these elements."""
    return tuple(
        (
            output.name,
            canonicalize(compute_aggregate(output.aggregate, assign_addresses(output.aggregate, elements))),
        )
        for output in outputs
    )


def assign_addresses(aggregate: Aggregate, elements: Sequence[StageElement]) -> Sequence[StageElement]:
    """Return elements with an address derived from event time and values, if they come from panes.

    A pane has no address. Elements with the same time are ordered by the aggregated values, across upstream
    stages. Only an aggregate over one input needs its name.
    """
    names = aggregate.used_fields
    is_input_relevant = aggregate.restricted_input is not None

    def with_address(element: StageElement) -> StageElement:
        if element.window is None:
            return element
        sort_values = value_sort_key({name: element.fields.get(name) for name in names})
        return replace(
            element, address=(element.address[0] if is_input_relevant else "", element.time, sort_values)
        )

    return [with_address(element) for element in elements]


@singledispatch
def compute_aggregate(aggregate: Aggregate, _elements: Sequence[StageElement]) -> Any:
    """Return one column. Each aggregate registers a function of its own; one from outside does so when imported."""
    raise NotImplementedError(
        f"The reference evaluator does not know {type(aggregate).__name__}. "
        "Import the module that registers it with @compute_aggregate.register"
    )


@compute_aggregate.register
def _(count: Count, elements: Sequence[StageElement]) -> Any:
    return len(elements) if count.field is None else len(non_null_values(count.field, elements))


@compute_aggregate.register
def _(total: Sum, elements: Sequence[StageElement]) -> Any:
    return compute_unless_empty(choose_sum(elements), non_null_values(total.field, elements))


@compute_aggregate.register
def _(mean: Mean, elements: Sequence[StageElement]) -> Any:
    add_values = choose_sum(elements)
    return compute_unless_empty(
        lambda values: add_values(values) / len(values), non_null_values(mean.field, elements)
    )


@compute_aggregate.register
def _(minimum: Min, elements: Sequence[StageElement]) -> Any:
    return min(non_null_values(minimum.field, elements), key=sort_key, default=None)


@compute_aggregate.register
def _(maximum: Max, elements: Sequence[StageElement]) -> Any:
    return max(non_null_values(maximum.field, elements), key=sort_key, default=None)


@compute_aggregate.register
def _(first: First, elements: Sequence[StageElement]) -> Any:
    values = non_null_values(first.field, sort_elements(elements, first.order))
    return values[0] if values else None


@compute_aggregate.register
def _(last: Last, elements: Sequence[StageElement]) -> Any:
    values = non_null_values(last.field, sort_elements(elements, last.order))
    return values[-1] if values else None


@compute_aggregate.register
def _(collect: Collect, elements: Sequence[StageElement]) -> Any:
    return tuple(non_null_values(collect.field, sort_elements(elements, collect.order)))


@compute_aggregate.register
def _(distinct: Distinct, elements: Sequence[StageElement]) -> Any:
    return len({canonicalize(value) for value in non_null_values(distinct.field, elements)})


@compute_aggregate.register
def _(top_n: TopN, elements: Sequence[StageElement]) -> Any:
    """The lower address wins a tie."""
    by = top_n.by or top_n.field
    ranked = [element for element in sort_elements(elements, "arrival") if element.fields.get(by) is not None]
    ranked.sort(key=lambda element: sort_key(element.fields[by]), reverse=top_n.largest)
    return tuple(element.fields.get(top_n.field) for element in ranked[: top_n.n])


@compute_aggregate.register
def _(quantiles: Quantiles, elements: Sequence[StageElement]) -> Any:
    sorted_values = sorted(non_null_values(quantiles.field, elements), key=sort_key)
    return tuple(pick_quantile(sorted_values, rank) for rank in quantiles.ranks)


@compute_aggregate.register
def _(custom: Custom, elements: Sequence[StageElement]) -> Any:
    """Run the combiner over all elements in one call."""
    combiner = custom.combiner.resolve()
    table = pa.table({name: [element.fields.get(name) for element in elements] for name in custom.fields})
    partials = combiner.add(table, np.zeros(len(elements), dtype=np.int64), 1)
    return combiner.result(partials)[0].as_py()


@compute_aggregate.register
def _(members: JoinMembers, elements: Sequence[StageElement]) -> Any:
    return tuple(
        tuple(element.fields.get(name) for name in members.fields)
        for element in sort_elements(filter_input(members.input, elements), "event_time")
    )


@compute_aggregate.register
def _(restricted: OfInput, elements: Sequence[StageElement]) -> Any:
    return compute_aggregate(restricted.aggregate, filter_input(restricted.input, elements))


def choose_sum(elements: Sequence[StageElement]) -> Callable[[list[Any]], Any]:
    """Return the function that adds values: exact for panes, because a retraction must cancel its insert."""
    return sum_exactly if any(element.window is not None for element in elements) else sum


def filter_input(input_: str, elements: Iterable[StageElement]) -> list[StageElement]:
    """Return the elements of one input: a topic, or an upstream stage."""
    return [element for element in elements if element.address[0] == input_]


def non_null_values(field: str, elements: Iterable[StageElement]) -> list[Any]:
    """Return the non-null values of a field."""
    return [field_value for element in elements if (field_value := element.fields.get(field)) is not None]


def sort_elements(elements: Iterable[StageElement], order: ValueOrder) -> list[StageElement]:
    """Return the elements by event time and address, or by address alone."""
    if order == "arrival":
        return sorted(elements, key=lambda element: element.address)
    return sorted(elements, key=lambda element: (element.time, element.address))


def compute_unless_empty(compute: Any, present_values: list[Any]) -> Any:
    """Return null for no values, else the computed value."""
    return compute(present_values) if present_values else None


def pick_quantile(sorted_values: list[Any], quantile: float) -> Any:
    """Return the smallest value at or below which at least this share of the values lies."""
    if not sorted_values:
        return None
    position = -int(-quantile * len(sorted_values) // 1)
    return sorted_values[max(position, 1) - 1]
