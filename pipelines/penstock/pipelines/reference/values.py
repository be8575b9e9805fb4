"""What: an aggregate over the elements of a pane, from nothing, each time."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from penstock.pipelines.plan.aggregates import (
    Aggregate,
    Collect,
    Count,
    Custom,
    Distinct,
    First,
    Last,
    Max,
    Mean,
    Members,
    Min,
    OfInput,
    Order,
    Output,
    Quantiles,
    Sum,
    TopN,
    aggregate_fields,
)
from penstock.pipelines.reference.changes import in_order
from penstock.pipelines.reference.numbers import canonical, exact_sum, rank
from penstock.pipelines.reference.records import Element


def values(outputs: Iterable[Output], elements: Sequence[Element]) -> tuple[tuple[str, Any], ...]:
    """Return the columns of a pane over these elements."""
    return tuple(
        (output.name, canonical(value(output.of, placed(output.of, elements)))) for output in outputs
    )


def placed(aggregate: Aggregate, elements: Sequence[Element]) -> Sequence[Element]:
    """Return elements of which those that come from panes have places by their time and their values.

    A pane has no address: of one time such elements stand in the order of the values that the aggregate is of,
    from whichever stage they come. Only who is over one input alone needs to know its name.
    """
    names = aggregate_fields(aggregate)
    parted = isinstance(aggregate, OfInput | Members)

    def place(element: Element) -> Element:
        if element.window is None:
            return element
        own = in_order({name: element.fields.get(name) for name in names})
        return replace(element, address=(element.address[0] if parted else "", element.time, own))

    return [place(element) for element in elements]


def value(aggregate: Aggregate, elements: Sequence[Element]) -> Any:
    """Return one column."""
    match aggregate:
        case Count(None):
            return len(elements)
        case Count(str(field)):
            return len(present(field, elements))
        case Sum(field):
            return none_if_empty(adding(elements), present(field, elements))
        case Mean(field):
            add = adding(elements)
            return none_if_empty(lambda found: add(found) / len(found), present(field, elements))
        case Min(field):
            return none_if_empty(lambda found: min(found, key=rank), present(field, elements))
        case Max(field):
            return none_if_empty(lambda found: max(found, key=rank), present(field, elements))
        case First(field, order):
            return none_if_empty(lambda found: found[0], present(field, ordered(elements, order)))
        case Last(field, order):
            return none_if_empty(lambda found: found[-1], present(field, ordered(elements, order)))
        case Collect(field, order):
            return tuple(present(field, ordered(elements, order)))
        case Distinct(field):
            return len({canonical(found) for found in present(field, elements)})
        case TopN():
            return best(aggregate, elements)
        case Quantiles(field, ranks):
            return tuple(at_rank(sorted(present(field, elements), key=rank), share) for share in ranks)
        case Custom():
            return combined(aggregate, elements)
        case Members(input_, fields):
            return tuple(
                tuple(element.fields.get(name) for name in fields)
                for element in ordered(of_input(input_, elements), "event_time")
            )
        case OfInput(input_, of):
            return value(of, of_input(input_, elements))


def adding(elements: Sequence[Element]) -> Callable[[list[Any]], Any]:
    """Return how values are added: of panes exactly, for what is taken back must leave nothing behind."""
    return exact_sum if any(element.window is not None for element in elements) else sum


def of_input(input_: str, elements: Iterable[Element]) -> list[Element]:
    """Return the elements of one input: a topic, or a stage whose panes are read."""
    return [element for element in elements if element.address[0] == input_]


def present(field: str, elements: Iterable[Element]) -> list[Any]:
    """Return the values of a field that are not null."""
    return [found for element in elements if (found := element.fields.get(field)) is not None]


def ordered(elements: Iterable[Element], order: Order) -> list[Element]:
    """Return the elements by event time and then address, or by address alone."""
    if order == "arrival":
        return sorted(elements, key=lambda element: element.address)
    return sorted(elements, key=lambda element: (element.time, element.address))


def none_if_empty(compute: Any, found: list[Any]) -> Any:
    """Return null where there is nothing to compute from."""
    return compute(found) if found else None


def best(top: TopN, elements: Iterable[Element]) -> tuple[Any, ...]:
    """Return the field of the n best elements; the one with the lower address wins a tie."""
    by = top.by or top.field
    judged = [element for element in ordered(elements, "arrival") if element.fields.get(by) is not None]
    judged.sort(key=lambda element: rank(element.fields[by]), reverse=top.largest)
    return tuple(element.fields.get(top.field) for element in judged[: top.n])


def at_rank(found: list[Any], share: float) -> Any:
    """Return the least value at or below which at least this share of all values lies."""
    if not found:
        return None
    below = -int(-share * len(found) // 1)
    return found[max(below, 1) - 1]


def combined(custom: Custom, elements: Sequence[Element]) -> Any:
    """Run one's own combiner over all elements at once."""
    import numpy as np  # only who brings a combiner needs Arrow
    import pyarrow as pa

    combiner = custom.combiner.resolve()
    table = pa.table({name: [element.fields.get(name) for element in elements] for name in custom.fields})
    partials = combiner.add(table, np.zeros(len(elements), dtype=np.int64), 1)
    return combiner.result(partials)[0].as_py()
