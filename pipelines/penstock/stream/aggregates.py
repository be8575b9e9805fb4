"""What: aggregates in the words of a person. Where Python has the word already, an underscore follows."""

from typing import cast

from penstock.engine.plan.aggregates import (
    Aggregate,
    Collect,
    Count,
    Custom,
    Distinct,
    First,
    Last,
    Max,
    Mean,
    Min,
    OfInput,
    Quantiles,
    Sum,
    TopN,
    ValueOrder,
)
from penstock.engine.plan.user_functions import Combiner, combiner_ref
from penstock.engine.plan.validation.argument_checks import require


def count(field: str | None = None) -> Count:
    """Count records, or those in which the field is not null."""
    return Count(field)


def sum_(field: str) -> Sum:
    """Add up the field."""
    return Sum(field)


def mean(field: str) -> Mean:
    """Average the field."""
    return Mean(field)


def min_(field: str) -> Min:
    """Find the least value."""
    return Min(field)


def max_(field: str) -> Max:
    """Find the greatest value."""
    return Max(field)


def first(field: str, order: str = "event_time") -> First:
    """Take the first value that is not null, by event time or by arrival."""
    return First(field, cast("ValueOrder", order))


def last(field: str, order: str = "event_time") -> Last:
    """Take the last value that is not null, by event time or by arrival."""
    return Last(field, cast("ValueOrder", order))


def distinct(field: str, exact: bool = True, precision: int = 12) -> Distinct:
    """Count different values, exactly or with a sketch of 2 ** precision registers."""
    return Distinct(field, exact, precision)


def top(n: int, field: str, by: str | None = None, largest: bool = True) -> TopN:
    """Take the field of the n records with the greatest (or least) `by`."""
    return TopN(field, n, by, largest)


def quantiles(field: str, *ranks: float, k: int = 200) -> Quantiles:
    """Approximate the values at these ranks, as in `quantiles("latency", 0.5, 0.99)`."""
    return Quantiles(field, ranks, k)


def collect(field: str, order: str = "event_time") -> Collect:
    """Keep all values, as a list."""
    return Collect(field, cast("ValueOrder", order))


def of(input_: str, aggregate: Aggregate) -> OfInput:
    """Restrict an aggregate to the elements of one input, as in `of("clicks", count())`."""
    return OfInput(input_, aggregate)


def combine(combiner: Combiner, *fields: str, version: str | None = None) -> Custom:
    """Use one's own combiner; `version` stands for its code where the writer keeps count himself."""
    is_combiner = not isinstance(combiner, type) and hasattr(combiner, "add")
    require(
        is_combiner,
        "aggregate.combine",
        repr(combiner),
        "Give a combiner of your own, as in combine(Longest(), 'word')",
    )
    return Custom(fields, combiner_ref(combiner, version))
