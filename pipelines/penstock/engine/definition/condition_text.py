"""Conditions as text that `parse_condition` reads back: the inverse of the parser."""

import re
from decimal import Decimal

from penstock.engine.definition.condition_parser import KEYWORDS
from penstock.engine.definition.predicates import (
    Comparison,
    Conjunction,
    Disjunction,
    IsNotTrue,
    IsNull,
    Negation,
    Predicate,
    PredicateConstant,
)

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9.]*")


def format_condition(predicate: Predicate) -> str:
    """Return a condition as a user writes it: `kind = 'end' and speed > 50`."""
    match predicate:
        case Comparison(field, operator, value):
            return f"{_format_field(field)} {operator} {_format_constant(value)}"
        case IsNull(field):
            return f"{_format_field(field)} is null"
        case Negation(IsNull(field)):
            return f"{_format_field(field)} is not null"
        case Negation(operand):
            return f"not ({format_condition(operand)})"
        case IsNotTrue(operand):
            return f"({format_condition(operand)}) is not true"
        case Conjunction(parts):
            return " and ".join(_format_part(part) for part in parts)
        case Disjunction(parts):
            return " or ".join(_format_part(part) for part in parts)


def _format_part(predicate: Predicate) -> str:
    text = format_condition(predicate)
    return f"({text})" if isinstance(predicate, Conjunction | Disjunction) else text


def _format_field(name: str) -> str:
    is_plain = _PLAIN_NAME.fullmatch(name) is not None and name.lower() not in KEYWORDS
    return name if is_plain else f"`{name}`"


def _format_constant(value: PredicateConstant) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            doubled = value.replace("'", "''")
            return f"'{doubled}'"
        case float():
            digits = f"{Decimal(repr(value)):f}"
            return digits if "." in digits else f"{digits}.0"
        case int():
            return str(value)
