"""What a case calls a punctuation: a condition in words, a value, or a mark on the element."""

from collections.abc import Mapping
from typing import Any

from penstock.pipelines.model.conditions import condition
from penstock.pipelines.plan.predicates import Compare, Predicate

MARK = "punctuation"


def predicate_of(node: Mapping[str, Any]) -> Predicate:
    """Read the condition of a punctuation; by default it is the element's own mark."""
    for name in ("predicate", "condition", "when"):
        if isinstance(node.get(name), str):
            return condition(node[name], f"punctuation.{name}")
    for name in ("value", "equals"):
        if name in node:
            return Compare("value", "=", node[name])
    return Compare(MARK, "=", value=True)
