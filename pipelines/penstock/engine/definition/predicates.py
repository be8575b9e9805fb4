"""Conditions on one record, as data. Spark evaluates them as SQL, the reference evaluates them itself.

Filters, `after_punctuation` and the punctuation policy of order windows use them. A condition over a null is not
true.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from penstock.engine.definition.argument_checks import require, require_name, require_one_of

ComparisonOperator: TypeAlias = Literal["=", "!=", "<", "<=", ">", ">="]
PredicateConstant: TypeAlias = str | int | float | bool
ESCAPED_DOLLAR = "\\u0024"
"""A dollar sign, escaped for a SQL string."""
COMPARISON_OPERATORS: tuple[str, ...] = ("=", "!=", "<", "<=", ">", ">=")


@dataclass(frozen=True)
class Comparison:
    """`field operator value`, with a constant on the right."""

    field: str
    operator: ComparisonOperator
    value: PredicateConstant

    def __post_init__(self) -> None:
        require_name(self.field, "predicate.field")
        require_one_of(self.operator, COMPARISON_OPERATORS, "predicate.operator")


@dataclass(frozen=True)
class IsNull:
    """The field has no value."""

    field: str

    def __post_init__(self) -> None:
        require_name(self.field, "predicate.field")


@dataclass(frozen=True)
class Negation:
    """The condition is false. A null is neither true nor false."""

    condition: "Predicate"


@dataclass(frozen=True)
class IsNotTrue:
    """The condition is false or null."""

    condition: "Predicate"


@dataclass(frozen=True)
class Conjunction:
    """All conditions hold."""

    conditions: tuple["Predicate", ...]

    def __post_init__(self) -> None:
        require(len(self.conditions) > 0, "predicate.and", "no conditions", "Name at least one condition")


@dataclass(frozen=True)
class Disjunction:
    """At least one condition holds."""

    conditions: tuple["Predicate", ...]

    def __post_init__(self) -> None:
        require(len(self.conditions) > 0, "predicate.or", "no conditions", "Name at least one condition")


Predicate: TypeAlias = Comparison | IsNull | Negation | IsNotTrue | Conjunction | Disjunction


def predicate_sql(predicate: Predicate) -> str:
    """Return the condition as a Spark SQL expression. A null result means "not true"."""
    match predicate:
        case Comparison(field, operator, value):
            return f"{quote_column(field)} {operator} {sql_literal(value)}"
        case IsNull(field):
            return f"{quote_column(field)} IS NULL"
        case Negation(operand):
            return f"NOT ({predicate_sql(operand)})"
        case IsNotTrue(operand):
            return f"NOT coalesce({predicate_sql(operand)}, FALSE)"
        case Conjunction(operand):
            return " AND ".join(f"({predicate_sql(part)})" for part in operand)
        case Disjunction(operand):
            return " OR ".join(f"({predicate_sql(part)})" for part in operand)


def predicate_fields(predicate: Predicate) -> frozenset[str]:
    """Return the fields that the condition reads."""
    match predicate:
        case Comparison(field) | IsNull(field):
            return frozenset({field})
        case Negation(operand) | IsNotTrue(operand):
            return predicate_fields(operand)
        case Conjunction(operand) | Disjunction(operand):
            return frozenset().union(*(predicate_fields(part) for part in operand))


def iter_comparisons(predicate: Predicate) -> Iterator[tuple[str, PredicateConstant]]:
    """Yield each compared field with its constant."""
    match predicate:
        case Comparison(field, _, value):
            yield field, value
        case Negation(operand) | IsNotTrue(operand):
            yield from iter_comparisons(operand)
        case Conjunction(parts) | Disjunction(parts):
            yield from (pair for part in parts for pair in iter_comparisons(part))


def quote_column(name: str) -> str:
    """Quote a column name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def sql_literal(value: PredicateConstant) -> str:
    """Return a constant as a Spark SQL literal."""
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case str():
            escaped = value.replace("\\", "\\\\").replace("'", "\\'")
            # Spark substitutes ${...} in SQL texts, including environment variables.
            return f"'{escaped.replace('${', ESCAPED_DOLLAR + '{')}'"
        case float():
            return f"CAST('{value!r}' AS DOUBLE)"
        case int():
            return str(value)
