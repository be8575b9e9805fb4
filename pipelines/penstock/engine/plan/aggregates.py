"""Aggregates over the records of a window, as data.

All aggregates except `Count()` ignore nulls.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from penstock.engine.definition.argument_checks import (
    require,
    require_name,
    require_one_of,
    require_positive,
    require_type,
)
from penstock.engine.definition.user_functions import CombinerRef

AGGREGATE_HINT = "Give an aggregate, as in count() or mean('temperature')"

ValueOrder: TypeAlias = Literal["event_time", "arrival"]
VALUE_ORDERS: tuple[str, ...] = ("event_time", "arrival")


@dataclass(frozen=True)
class Count:
    """Number of records; with a field, of records where it is not null."""

    field: str | None = None


@dataclass(frozen=True)
class Sum:
    """Sum of the field; null when no record had a value."""

    field: str

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.sum")


@dataclass(frozen=True)
class Mean:
    """Arithmetic mean of the field; null when no record had a value."""

    field: str

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.mean")


@dataclass(frozen=True)
class Min:
    """Minimum of the field."""

    field: str

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.min")


@dataclass(frozen=True)
class Max:
    """Maximum of the field."""

    field: str

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.max")


@dataclass(frozen=True)
class First:
    """First value that is not null: by event time and then arrival, or by arrival."""

    field: str
    order: ValueOrder = "event_time"

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.first")
        require_one_of(self.order, VALUE_ORDERS, "aggregate.first.order")


@dataclass(frozen=True)
class Last:
    """Last value that is not null: by event time and then arrival, or by arrival."""

    field: str
    order: ValueOrder = "event_time"

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.last")
        require_one_of(self.order, VALUE_ORDERS, "aggregate.last.order")


@dataclass(frozen=True)
class Distinct:
    """Number of distinct values: exact, or approximate by a HyperLogLog sketch with 2 ** `precision` registers."""

    field: str
    exact: bool = True
    precision: int = 12

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.distinct")
        require(
            isinstance(self.precision, int) and 4 <= self.precision <= 21,
            "aggregate.distinct.precision",
            self.precision,
            "Give 4 to 21",
        )


@dataclass(frozen=True)
class TopN:
    """The field of the n records with the largest (or smallest) `by`, best first.

    The earlier arrival wins a tie. Without `by`, the field's own values are compared.
    """

    field: str
    n: int
    by: str | None = None
    largest: bool = True

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.top")
        require_positive(self.n, "aggregate.top.n", "records")


@dataclass(frozen=True)
class Quantiles:
    """Approximate values at the given ranks (0 to 1), by a sketch of parameter `k`; exact up to k values."""

    field: str
    ranks: tuple[float, ...]
    k: int = 200

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.quantiles")
        are_numbers = all(isinstance(rank, int | float) for rank in self.ranks)
        are_in_range = are_numbers and len(self.ranks) > 0 and all(0 <= rank <= 1 for rank in self.ranks)
        require(are_in_range, "aggregate.quantiles.ranks", self.ranks, "Give ranks from 0 to 1, as in 0.5")
        require(
            isinstance(self.k, int) and 8 <= self.k <= 65_535,
            "aggregate.quantiles.k",
            self.k,
            "Give 8 to 65535",
        )


@dataclass(frozen=True)
class Collect:
    """All values of the field as a list, ordered by event time and then arrival, or by arrival."""

    field: str
    order: ValueOrder = "event_time"

    def __post_init__(self) -> None:
        require_name(self.field, "aggregate.collect")
        require_one_of(self.order, VALUE_ORDERS, "aggregate.collect.order")


@dataclass(frozen=True)
class Custom:
    """A user-defined combiner over the named fields."""

    fields: tuple[str, ...]
    combiner: CombinerRef

    def __post_init__(self) -> None:
        require(len(self.fields) > 0, "aggregate.custom.fields", "none", "Name the fields that it combines")


@dataclass(frozen=True)
class JoinMembers:
    """The elements of one input with some of their fields, which a join combines."""

    input: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class OfInput:
    """Another aggregate, restricted to one input of a stage that reads several."""

    input: str
    aggregate: "Aggregate"

    def __post_init__(self) -> None:
        require_name(self.input, "aggregate.of")
        require_type(self.aggregate, Aggregate, "aggregate.of", AGGREGATE_HINT)
        fix = "Use the combiner in a stage with one input, or let it ignore nulls and remove of(...)"
        require(not isinstance(self.aggregate, Custom), "aggregate.of", "a user-defined combiner", fix)
        fix = "Name one input: of('clicks', count())"
        require(not isinstance(self.aggregate, OfInput | JoinMembers), "aggregate.of", "nested", fix)


Aggregate: TypeAlias = (
    Count
    | Sum
    | Mean
    | Min
    | Max
    | First
    | Last
    | Distinct
    | TopN
    | Quantiles
    | Collect
    | Custom
    | JoinMembers
    | OfInput
)


@dataclass(frozen=True)
class AggregateOutput:
    """A result column and its aggregate."""

    name: str
    aggregate: Aggregate

    def __post_init__(self) -> None:
        require_name(self.name, "aggregate")
        fix = "Choose a name that starts with a letter: names with a leading _ are reserved"
        require(not self.name.startswith("_"), f"aggregate.{self.name}", repr(self.name), fix)
        require_type(self.aggregate, Aggregate, f"aggregate.{self.name}", AGGREGATE_HINT)


def aggregate_fields(aggregate: Aggregate) -> tuple[str, ...]:
    """Return the fields of a record that the aggregate reads."""
    match aggregate:
        case Count(field):
            return () if field is None else (field,)
        case TopN(field=field, by=by):
            return (field,) if by is None else (field, by)
        case Custom(fields) | JoinMembers(fields=fields):
            return fields
        case OfInput(aggregate=inner):
            return aggregate_fields(inner)
        case _:
            return (aggregate.field,)


def needs_arrival_order(aggregate: Aggregate) -> bool:
    """Return whether the result depends on the order in which records arrive."""
    match aggregate:
        case First(order=order) | Last(order=order) | Collect(order=order):
            return order == "arrival"
        case OfInput(aggregate=inner):
            return needs_arrival_order(inner)
        case _:
            return False


def can_retract(aggregate: Aggregate) -> bool:
    """Return whether the aggregate can subtract a value. Over changes, others keep every value."""
    match aggregate:
        case Count() | Sum() | Mean():
            return True
        case Custom(combiner=combiner):
            return combiner.can_subtract
        case JoinMembers():
            return True
        case OfInput(aggregate=inner):
            return can_retract(inner)
        case _:
            return False
