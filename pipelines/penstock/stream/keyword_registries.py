"""The keywords of definitions: which function each of them calls, in Python and in YAML."""

from inspect import Parameter
from types import UnionType
from typing import Any, Union, get_args, get_origin

from penstock.core.kind_registry import KindRegistry
from penstock.engine.aggregates import Aggregate
from penstock.engine.definition.keyword import KeywordFunction, keyword_registry
from penstock.engine.plan.sinks import TableSink
from penstock.engine.triggers.trigger import Trigger
from penstock.engine.windows.order_policy import OrderPolicy
from penstock.engine.windows.window import Window

AGGREGATE_KEYWORDS = keyword_registry("aggregate", "penstock.engine.aggregates", Aggregate)
TRIGGER_KEYWORDS = keyword_registry("trigger", "penstock.engine.triggers", Trigger)
WINDOW_KEYWORDS = keyword_registry("window", "penstock.engine.windows", Window)
POLICY_KEYWORDS = keyword_registry("policy", "penstock.engine.windows", OrderPolicy, "penstock.policies")
SINK_KEYWORDS = keyword_registry("sink", "penstock.engine.sinks", TableSink)
NESTED_KEYWORDS: tuple[tuple[type[Any], KindRegistry[KeywordFunction]], ...] = (
    (Aggregate, AGGREGATE_KEYWORDS),
    (Trigger, TRIGGER_KEYWORDS),
    (OrderPolicy, POLICY_KEYWORDS),
)
"""Parts that are arguments of other keywords, and their keywords."""


def find_nested_registry(parameter: Parameter) -> KindRegistry[KeywordFunction] | None:
    """Return the registry of a parameter that takes parts of a plan; None if it takes plain values.

    Its annotation decides, as in `until: Trigger` or `early: Trigger | None`.
    """
    annotation = parameter.annotation
    is_union = get_origin(annotation) in {Union, UnionType}
    classes = [
        part for part in (get_args(annotation) if is_union else (annotation,)) if part is not type(None)
    ]
    for part_class, registry in NESTED_KEYWORDS:
        if classes and all(isinstance(item, type) and issubclass(item, part_class) for item in classes):
            return registry
    return None


def find_added_keyword(module: str, name: str, *registries: KindRegistry[KeywordFunction]) -> KeywordFunction:
    """Return the keyword function of this name, for a kind that was added without an edit of the API.

    `module` is the one that is asked for the attribute; raise AttributeError if no registry has it.
    """
    if not name.startswith("_"):
        for registry in registries:
            for function in registry.kinds_by_name.values():
                if function.__name__ == name:
                    return function
    raise AttributeError(f"module {module!r} has no attribute {name!r}")
