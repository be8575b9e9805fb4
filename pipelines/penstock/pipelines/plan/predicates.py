"""Conditions on one record, as data: Spark gets them as SQL, the reference evaluates them itself.

They are what `after_punctuation` and the punctuation policy of order windows look for.
A condition over a null is not true, whichever engine asks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from penstock.pipelines.plan.checks import named, one_of, require

Operator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
Constant: TypeAlias = str | int | float | bool
DOLLAR = "\\u0024"
"""A dollar sign as SQL may write it in a text."""
OPERATORS: tuple[str, ...] = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Compare:
    """`field operator value`, with a constant on the right."""

    field: str
    operator: Operator
    value: Constant

    def __post_init__(self) -> None:
        named(self.field, "predicate.field")
        one_of(self.operator, OPERATORS, "predicate.operator")


@dataclass(frozen=True)
class IsNull:
    """The field has no value."""

    field: str

    def __post_init__(self) -> None:
        named(self.field, "predicate.field")


@dataclass(frozen=True)
class Negation:
    """The condition is known to be false (a null is neither true nor false)."""

    of: "Predicate"


@dataclass(frozen=True)
class Unmet:
    """The condition is not true: it is false, or nobody knows."""

    of: "Predicate"


@dataclass(frozen=True)
class Conjunction:
    """All conditions hold."""

    of: tuple["Predicate", ...]

    def __post_init__(self) -> None:
        require(len(self.of) > 0, "predicate.and", "no conditions", "Name at least one condition")


@dataclass(frozen=True)
class Disjunction:
    """At least one condition holds."""

    of: tuple["Predicate", ...]

    def __post_init__(self) -> None:
        require(len(self.of) > 0, "predicate.or", "no conditions", "Name at least one condition")


Predicate: TypeAlias = Compare | IsNull | Negation | Unmet | Conjunction | Disjunction


def predicate_sql(predicate: Predicate) -> str:
    """Write the condition as a Spark SQL expression; a null result stands for "not true"."""
    match predicate:
        case Compare(field, operator, value):
            return f"{quoted(field)} {operator} {literal(value)}"
        case IsNull(field):
            return f"{quoted(field)} IS NULL"
        case Negation(of):
            return f"NOT ({predicate_sql(of)})"
        case Unmet(of):
            return f"NOT coalesce({predicate_sql(of)}, FALSE)"
        case Conjunction(of):
            return " AND ".join(f"({predicate_sql(part)})" for part in of)
        case Disjunction(of):
            return " OR ".join(f"({predicate_sql(part)})" for part in of)


def predicate_fields(predicate: Predicate) -> frozenset[str]:
    """Name the fields that the condition looks at."""
    match predicate:
        case Compare(field) | IsNull(field):
            return frozenset({field})
        case Negation(of) | Unmet(of):
            return predicate_fields(of)
        case Conjunction(of) | Disjunction(of):
            return frozenset().union(*(predicate_fields(part) for part in of))


def compared(predicate: Predicate) -> Iterator[tuple[str, Constant]]:
    """Yield the fields that are compared, and with what."""
    match predicate:
        case Compare(field, _, value):
            yield field, value
        case Negation(of) | Unmet(of):
            yield from compared(of)
        case Conjunction(parts) | Disjunction(parts):
            yield from (pair for part in parts for pair in compared(part))


def quoted(name: str) -> str:
    """Quote a column's name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def literal(value: Constant) -> str:
    """Write a constant for Spark SQL."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            # Spark puts variables, those of its process among them, in place of names in braces.
            return f"'{escaped.replace('${', DOLLAR + '{')}'"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case int():
            return str(value)
