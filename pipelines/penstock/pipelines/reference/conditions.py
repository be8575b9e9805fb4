"""Whether a record meets a condition: true, false, or unknown where a null is involved, as in SQL."""

import operator
from collections.abc import Callable, Mapping
from math import isnan
from typing import Any

from penstock.pipelines.plan.predicates import (
    Compare,
    Conjunction,
    Disjunction,
    IsNull,
    Negation,
    Predicate,
    Unmet,
)

COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def meets(fields: Mapping[str, Any], predicate: Predicate) -> bool:
    """Tell whether the condition is true; unknown is not true."""
    return truth(fields, predicate) is True


def truth(fields: Mapping[str, Any], predicate: Predicate) -> bool | None:
    """Return true, false or None for unknown."""
    match predicate:
        case Compare(field, sign, value):
            found = fields.get(field)
            if isinstance(found, float) and isnan(found):
                return sign in ("!=", ">", ">=")  # NaN is greater than every number
            return None if found is None else COMPARE[sign](found, value)
        case IsNull(field):
            return fields.get(field) is None
        case Negation(of):
            inner = truth(fields, of)
            return None if inner is None else not inner
        case Unmet(of):
            return truth(fields, of) is not True
        case Conjunction(of):
            parts = [truth(fields, part) for part in of]
            return False if False in parts else None if None in parts else True
        case Disjunction(of):
            parts = [truth(fields, part) for part in of]
            return True if True in parts else None if None in parts else False
