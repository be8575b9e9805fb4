"""Parses a punctuation: a condition, a value, or a mark on the element."""

from collections.abc import Mapping
from typing import Any

from penstock.conformance.field_validation import invalid_field_error, is_scalar
from penstock.engine.definition.condition_parser import parse_condition
from penstock.engine.definition.predicates import Comparison, Predicate

MARK_FIELD = "punctuation"
CONDITION_FIELDS = ("predicate", "condition", "when")
VALUE_FIELDS = ("value", "equals")
PUNCTUATION_FIELDS = (*CONDITION_FIELDS, *VALUE_FIELDS)


def parse_predicate(node: Mapping[str, Any]) -> Predicate:
    """Parse the condition of a punctuation; the default is the element's own mark."""
    for name in CONDITION_FIELDS:
        if name in node:
            return parse_condition(node[name], f"punctuation.{name}")
    for name in VALUE_FIELDS:
        if name in node:
            if node[name] is None or not is_scalar(node[name]):
                raise invalid_field_error(
                    f"punctuation.{name}", node[name], "a number, a string, true or false"
                )
            return Comparison("value", "=", node[name])
    return Comparison(MARK_FIELD, "=", value=True)
