"""Evaluates a predicate on a record: true, false, or unknown if a null is involved, as in SQL."""

import operator
from collections.abc import Callable, Mapping
from math import isnan
from typing import Any

from penstock.engine.definition.predicates import (
    Comparison,
    Conjunction,
    Disjunction,
    IsNotTrue,
    IsNull,
    Negation,
    Predicate,
)

COMPARISON_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def matches_predicate(fields: Mapping[str, Any], predicate: Predicate) -> bool:
    """Tell whether the predicate is true; unknown is not true."""
    return evaluate_predicate(fields, predicate) is True


def evaluate_predicate(fields: Mapping[str, Any], predicate: Predicate) -> bool | None:
    """Return true, false or None for unknown."""
    match predicate:
        case Comparison(field, comparison, value):
            actual = fields.get(field)
            if isinstance(actual, float) and isnan(actual):
                return comparison in ("!=", ">", ">=")  # NaN is greater than every number
            return None if actual is None else COMPARISON_OPERATORS[comparison](actual, value)
        case IsNull(field):
            return fields.get(field) is None
        case Negation(operand):
            result = evaluate_predicate(fields, operand)
            return None if result is None else not result
        case IsNotTrue(operand):
            return evaluate_predicate(fields, operand) is not True
        case Conjunction(operand):
            results = [evaluate_predicate(fields, part) for part in operand]
            return False if False in results else None if None in results else True
        case Disjunction(operand):
            results = [evaluate_predicate(fields, part) for part in operand]
            return True if True in results else None if None in results else False
