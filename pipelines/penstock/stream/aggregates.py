"""Aggregates of the public API. Names of Python built-ins have a trailing underscore."""

from typing import cast

from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.user_functions import Combiner, combiner_ref
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


def count(field: str | None = None) -> Count:
    """Count records, or only those where the field is not null."""
    return Count(field)


def sum_(field: str) -> Sum:
    """Sum the field."""
    return Sum(field)


def mean(field: str) -> Mean:
    """Average the field."""
    return Mean(field)


def min_(field: str) -> Min:
    """Take the minimum of the field."""
    return Min(field)


def max_(field: str) -> Max:
    """Take the maximum of the field."""
    return Max(field)


def first(field: str, order: str = "event_time") -> First:
    """Take the first value that is not null, by `event_time` or by `arrival`."""
    return First(field, cast("ValueOrder", order))


def last(field: str, order: str = "event_time") -> Last:
    """Take the last value that is not null, by `event_time` or by `arrival`."""
    return Last(field, cast("ValueOrder", order))


def distinct(field: str, exact: bool = True, precision: int = 12) -> Distinct:
    """Count distinct values, exactly or with a HyperLogLog sketch of 2 ** precision registers."""
    return Distinct(field, exact, precision)


def top(n: int, field: str, by: str | None = None, largest: bool = True) -> TopN:
    """Take the field of the n records with the largest (or smallest) `by`."""
    return TopN(field, n, by, largest)


def quantiles(field: str, *ranks: float, k: int = 200) -> Quantiles:
    """Approximate the quantiles at these ranks with a KLL sketch, as in `quantiles("latency", 0.5, 0.99)`."""
    return Quantiles(field, ranks, k)


def collect(field: str, order: str = "event_time") -> Collect:
    """Collect all values into a list."""
    return Collect(field, cast("ValueOrder", order))


def of(input_: str, aggregate: Aggregate) -> OfInput:
    """Restrict an aggregate to one input of the stage, as in `of("clicks", count())`."""
    return OfInput(input_, aggregate)


def combine(combiner: Combiner, *fields: str, version: str | None = None) -> Custom:
    """Use a user-defined combiner. `version` replaces the hash of its code in the plan if it is given."""
    is_combiner = not isinstance(combiner, type) and hasattr(combiner, "add")
    require(
        is_combiner,
        "aggregate.combine",
        repr(combiner),
        "Give an instance of a Combiner, as in combine(Longest(), 'word')",
    )
    return Custom(fields, combiner_ref(combiner, version))
