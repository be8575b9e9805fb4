"""What is computed over the records of a window, as data.

Nulls in a field are passed over by all but `Count()`.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from penstock.pipelines.plan.checks import named, of_kind, one_of, positive, require
from penstock.pipelines.plan.custom import CombinerRef

AN_AGGREGATE = "Give an aggregate, as in count() or mean('temperature')"

Order: TypeAlias = Literal["event_time", "arrival"]
ORDERS: tuple[str, ...] = ("event_time", "arrival")


@dataclass(frozen=True)
class Count:
    """Records; with a field, those in which it is not null."""

    field: str | None = None


@dataclass(frozen=True)
class Sum:
    """Sum of the field; null when no record had a value."""

    field: str

    def __post_init__(self) -> None:
        named(self.field, "aggregate.sum")


@dataclass(frozen=True)
class Mean:
    """Arithmetic mean of the field; null when no record had a value."""

    field: str

    def __post_init__(self) -> None:
        named(self.field, "aggregate.mean")


@dataclass(frozen=True)
class Min:
    """Least value of the field."""

    field: str

    def __post_init__(self) -> None:
        named(self.field, "aggregate.min")


@dataclass(frozen=True)
class Max:
    """Greatest value of the field."""

    field: str

    def __post_init__(self) -> None:
        named(self.field, "aggregate.max")


@dataclass(frozen=True)
class First:
    """Value of the first record that has one: by event time and then arrival, or by arrival alone."""

    field: str
    order: Order = "event_time"

    def __post_init__(self) -> None:
        named(self.field, "aggregate.first")
        one_of(self.order, ORDERS, "aggregate.first.order")


@dataclass(frozen=True)
class Last:
    """Value of the last record that has one: by event time and then arrival, or by arrival alone."""

    field: str
    order: Order = "event_time"

    def __post_init__(self) -> None:
        named(self.field, "aggregate.last")
        one_of(self.order, ORDERS, "aggregate.last.order")


@dataclass(frozen=True)
class Distinct:
    """Number of different values: exact, or by a HyperLogLog sketch with 2 ** `precision` registers."""

    field: str
    exact: bool = True
    precision: int = 12

    def __post_init__(self) -> None:
        named(self.field, "aggregate.distinct")
        require(
            isinstance(self.precision, int) and 4 <= self.precision <= 21,
            "aggregate.distinct.precision",
            self.precision,
            "Give 4 to 21",
        )


@dataclass(frozen=True)
class TopN:
    """The field of the n records with the greatest (or least) `by`, best first.

    The earlier arrival wins a tie. Without `by`, the field's own values are compared.
    """

    field: str
    n: int
    by: str | None = None
    largest: bool = True

    def __post_init__(self) -> None:
        named(self.field, "aggregate.top")
        positive(self.n, "aggregate.top.n", "records")


@dataclass(frozen=True)
class Quantiles:
    """Approximate values at the given ranks (0 to 1), by a sketch of parameter `k`; exact up to k values."""

    field: str
    ranks: tuple[float, ...]
    k: int = 200

    def __post_init__(self) -> None:
        named(self.field, "aggregate.quantiles")
        numbers = all(isinstance(rank, int | float) for rank in self.ranks)
        inside = numbers and len(self.ranks) > 0 and all(0 <= rank <= 1 for rank in self.ranks)
        require(inside, "aggregate.quantiles.ranks", self.ranks, "Give ranks from 0 to 1, as in 0.5")
        require(
            isinstance(self.k, int) and 8 <= self.k <= 65_535,
            "aggregate.quantiles.k",
            self.k,
            "Give 8 to 65535",
        )


@dataclass(frozen=True)
class Collect:
    """All values of the field, as a list, by event time and then arrival, or by arrival alone."""

    field: str
    order: Order = "event_time"

    def __post_init__(self) -> None:
        named(self.field, "aggregate.collect")
        one_of(self.order, ORDERS, "aggregate.collect.order")


@dataclass(frozen=True)
class Custom:
    """One's own combiner over the named fields."""

    fields: tuple[str, ...]
    combiner: CombinerRef

    def __post_init__(self) -> None:
        require(len(self.fields) > 0, "aggregate.custom.fields", "none", "Name the fields it combines")


@dataclass(frozen=True)
class Members:
    """The elements of one input, each with some of its fields: what a join puts together."""

    input: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class OfInput:
    """Another aggregate over the elements of one input alone, in a stage that reads several."""

    input: str
    of: "Aggregate"

    def __post_init__(self) -> None:
        named(self.input, "aggregate.of")
        of_kind(self.of, Aggregate, "aggregate.of", AN_AGGREGATE)
        fix = "Write the combiner in a stage of one input, or let it pass over nulls without of(...)"
        require(not isinstance(self.of, Custom), "aggregate.of", "a combiner of one's own", fix)
        fix = "Name one input: of('clicks', count())"
        require(not isinstance(self.of, OfInput | Members), "aggregate.of", "one inside another", fix)


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
    | Members
    | OfInput
)


@dataclass(frozen=True)
class Output:
    """A column of the result and what it holds."""

    name: str
    of: Aggregate

    def __post_init__(self) -> None:
        named(self.name, "aggregate")
        fix = "Choose a name that begins with a letter: those with _ before them are columns of ours"
        require(not self.name.startswith("_"), f"aggregate.{self.name}", repr(self.name), fix)
        of_kind(self.of, Aggregate, f"aggregate.{self.name}", AN_AGGREGATE)


def aggregate_fields(aggregate: Aggregate) -> tuple[str, ...]:
    """Name the fields of a record that the aggregate reads."""
    match aggregate:
        case Count(field):
            return () if field is None else (field,)
        case TopN(field=field, by=by):
            return (field,) if by is None else (field, by)
        case Custom(fields) | Members(fields=fields):
            return fields
        case OfInput(of=of):
            return aggregate_fields(of)
        case _:
            return (aggregate.field,)


def needs_arrival_order(aggregate: Aggregate) -> bool:
    """Tell whether the answer depends on the order in which records came."""
    match aggregate:
        case First(order=order) | Last(order=order) | Collect(order=order):
            return order == "arrival"
        case OfInput(of=of):
            return needs_arrival_order(of)
        case _:
            return False


def takes_back(aggregate: Aggregate) -> bool:
    """Tell whether a change can be subtracted from what it holds; over changes the others keep every value."""
    match aggregate:
        case Count() | Sum() | Mean():
            return True
        case Custom(combiner=combiner):
            return combiner.takes_back
        case Members():
            return True
        case OfInput(of=of):
            return takes_back(of)
        case _:
            return False
