"""Computes aggregates over the elements of a pane, from scratch each time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from penstock.conformance.reference.changelog import value_sort_key
from penstock.conformance.reference.input_records import StageElement
from penstock.conformance.reference.number_semantics import canonicalize, sort_key, sum_exactly
from penstock.engine.plan.aggregates import (
    Aggregate,
    AggregateOutput,
    Collect,
    Count,
    Custom,
    Distinct,
    First,
    JoinMembers,
    Last,
    Max,
    Mean,
    Min,
    OfInput,
    Quantiles,
    Sum,
    TopN,
    ValueOrder,
    aggregate_fields,
)


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
    names = aggregate_fields(aggregate)
    is_input_relevant = isinstance(aggregate, OfInput | JoinMembers)

    def with_address(element: StageElement) -> StageElement:
        if element.window is None:
            return element
        sort_values = value_sort_key({name: element.fields.get(name) for name in names})
        return replace(
            element, address=(element.address[0] if is_input_relevant else "", element.time, sort_values)
        )

    return [with_address(element) for element in elements]


def compute_aggregate(aggregate: Aggregate, elements: Sequence[StageElement]) -> Any:
    """Return one column."""
    match aggregate:
        case Count(None):
            return len(elements)
        case Count(str(field)):
            return len(non_null_values(field, elements))
        case Sum(field):
            return compute_unless_empty(choose_sum(elements), non_null_values(field, elements))
        case Mean(field):
            add_values = choose_sum(elements)
            return compute_unless_empty(
                lambda values: add_values(values) / len(values), non_null_values(field, elements)
            )
        case Min(field):
            return compute_unless_empty(
                lambda values: min(values, key=sort_key), non_null_values(field, elements)
            )
        case Max(field):
            return compute_unless_empty(
                lambda values: max(values, key=sort_key), non_null_values(field, elements)
            )
        case First(field, order):
            return compute_unless_empty(
                lambda values: values[0], non_null_values(field, sort_elements(elements, order))
            )
        case Last(field, order):
            return compute_unless_empty(
                lambda values: values[-1], non_null_values(field, sort_elements(elements, order))
            )
        case Collect(field, order):
            return tuple(non_null_values(field, sort_elements(elements, order)))
        case Distinct(field):
            return len({canonicalize(value) for value in non_null_values(field, elements)})
        case TopN():
            return compute_top_n(aggregate, elements)
        case Quantiles(field, ranks):
            return tuple(
                pick_quantile(sorted(non_null_values(field, elements), key=sort_key), quantile)
                for quantile in ranks
            )
        case Custom():
            return run_combiner(aggregate, elements)
        case JoinMembers(input_, fields):
            return tuple(
                tuple(element.fields.get(name) for name in fields)
                for element in sort_elements(filter_input(input_, elements), "event_time")
            )
        case OfInput(input_, inner):
            return compute_aggregate(inner, filter_input(input_, elements))


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


def compute_top_n(top_n: TopN, elements: Iterable[StageElement]) -> tuple[Any, ...]:
    """Return the field of the top n elements; the lower address wins a tie."""
    by = top_n.by or top_n.field
    ranked = [element for element in sort_elements(elements, "arrival") if element.fields.get(by) is not None]
    ranked.sort(key=lambda element: sort_key(element.fields[by]), reverse=top_n.largest)
    return tuple(element.fields.get(top_n.field) for element in ranked[: top_n.n])


def pick_quantile(sorted_values: list[Any], quantile: float) -> Any:
    """Return the smallest value at or below which at least this share of the values lies."""
    if not sorted_values:
        return None
    position = -int(-quantile * len(sorted_values) // 1)
    return sorted_values[max(position, 1) - 1]


def run_combiner(custom: Custom, elements: Sequence[StageElement]) -> Any:
    """Run a user-defined combiner over all elements in one call."""
    import numpy as np  # only combiners need Arrow
    import pyarrow as pa

    combiner = custom.combiner.resolve()
    table = pa.table({name: [element.fields.get(name) for element in elements] for name in custom.fields})
    partials = combiner.add(table, np.zeros(len(elements), dtype=np.int64), 1)
    return combiner.result(partials)[0].as_py()
