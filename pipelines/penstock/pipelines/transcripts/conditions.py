"""What a case calls a punctuation: a condition in words, a value, or a mark on the element."""

from collections.abc import Mapping
from typing import Any

from penstock.pipelines.model.conditions import condition
from penstock.pipelines.plan.predicates import Compare, Predicate
from penstock.pipelines.transcripts.form import is_plain, wrong

MARK = "punctuation"
CONDITIONS = ("predicate", "condition", "when")
VALUES = ("value", "equals")
PUNCTUATION = (*CONDITIONS, *VALUES)


def predicate_of(node: Mapping[str, Any]) -> Predicate:
    """Read the condition of a punctuation; by default it is the element's own mark."""
    for name in CONDITIONS:
        if name in node:
            return condition(node[name], f"punctuation.{name}")
    for name in VALUES:
        if name in node:
            if node[name] is None or not is_plain(node[name]):
                raise wrong(f"punctuation.{name}", node[name], "a number, a text, true or false")
            return Compare("value", "=", node[name])
    return Compare(MARK, "=", value=True)
