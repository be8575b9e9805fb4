"""The keywords of YAML definitions, and their conversion to parts of a plan.

`{keyword: value}` calls the function of that name: a mapping gives named arguments, a list positional arguments,
and any other value is the only argument. A keyword alone is a call without arguments.
"""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.engine.errors import DefinitionError
from penstock.stream import triggers, windows

KeywordFunction = Callable[..., Any]

TRIGGER_KEYWORDS: dict[str, KeywordFunction] = {
    "default": triggers.default,
    "after_watermark": triggers.after_watermark,
    "after_count": triggers.after_count,
    "after_processing_time": triggers.after_processing_time,
    "every": triggers.every,
    "after_punctuation": triggers.after_punctuation,
    "after_any": triggers.after_any,
    "after_all": triggers.after_all,
    "after_each": triggers.after_each,
    "or_finally": triggers.or_finally,
    "repeatedly": triggers.repeatedly,
}
POLICY_KEYWORDS: dict[str, KeywordFunction] = {
    "records": windows.records,
    "delta": windows.delta,
    "punctuation": windows.punctuation,
    "elapsed": windows.elapsed,
}
WINDOW_KEYWORDS: dict[str, KeywordFunction] = {
    "fixed": windows.fixed,
    "sliding": windows.sliding,
    "sessions": windows.sessions,
    "calendar": windows.calendar,
    "global": windows.global_window,
    "same": windows.same_windows,
    "between": windows.between,
    "as_of": windows.as_of,
    "tumbling": windows.tumbling,
    "sliding_by": windows.sliding_by,
}
# The keywords whose arguments are keywords, and the keywords that they accept.
NESTED_KEYWORDS: dict[str, dict[str, KeywordFunction]] = {
    **dict.fromkeys(
        ("after_watermark", "after_any", "after_all", "after_each", "or_finally"), TRIGGER_KEYWORDS
    ),
    "repeatedly": TRIGGER_KEYWORDS,
    "tumbling": POLICY_KEYWORDS,
    "sliding_by": POLICY_KEYWORDS,
}


def parse_keyword(node: object, keywords: Mapping[str, KeywordFunction], field: str) -> Any:
    """Convert a keyword and its arguments to a part of a plan."""
    keyword, value = split_keyword(node, keywords, field)
    nested_keywords = NESTED_KEYWORDS.get(keyword)
    keyword_field = f"{field}.{keyword}"
    positional, keyword_arguments = split_arguments(value, nested_keywords)
    if nested_keywords is not None:
        positional = [parse_keyword(argument, nested_keywords, keyword_field) for argument in positional]
        keyword_arguments = {
            name: parse_nested_keyword(argument, nested_keywords, f"{keyword_field}.{name}")
            for name, argument in keyword_arguments.items()
        }
    return call_with_arguments(keywords[keyword], positional, keyword_arguments, keyword_field)


def parse_nested_keyword(node: object, keywords: Mapping[str, KeywordFunction], field: str) -> Any:
    """Convert an argument that is a keyword itself; null is None."""
    return None if node is None else parse_keyword(node, keywords, field)


def split_keyword(node: object, keywords: Mapping[str, KeywordFunction], field: str) -> tuple[str, object]:
    """Split a node into its keyword and the value."""
    if isinstance(node, str):
        return require_known_name(node, keywords, field), None
    if isinstance(node, Mapping) and len(node) == 1:
        ((keyword, value),) = node.items()
        return require_known_name(str(keyword), keywords, field), value
    for keyword in node if isinstance(node, Mapping) else ():
        require_known_name(str(keyword), keywords, field)
    raise DefinitionError(field, repr(node), f"Write one of: {', '.join(keywords)}, with its arguments")


def split_arguments(
    value: object, nested_keywords: Mapping[str, KeywordFunction] | None
) -> tuple[list[Any], dict[str, Any]]:
    """Split a value into positional and named arguments."""
    if value is None:
        return [], {}
    if isinstance(value, list):
        return list(value), {}
    if isinstance(value, Mapping) and not (
        nested_keywords and len(value) == 1 and next(iter(value)) in nested_keywords
    ):
        return [], {str(name): item for name, item in value.items()}
    return [value], {}


def call_with_arguments(
    function: KeywordFunction, positional: list[Any], keyword_arguments: dict[str, Any], field: str
) -> Any:
    """Call the function of a keyword. If the arguments do not fit, the error lists its parameters."""
    signature = inspect.signature(function)
    try:
        signature.bind(*positional, **keyword_arguments)
    except TypeError as problem:
        parameter_names = ", ".join(signature.parameters) or "nothing"
        raise DefinitionError(field, str(problem), f"Its arguments are: {parameter_names}") from None
    return function(*positional, **keyword_arguments)


def require_known_name(name: str, known_names: Iterable[str], field: str) -> str:
    """Refuse a name that is not in the list. The error suggests the nearest one."""
    name_list = list(known_names)
    if name in name_list:
        return name
    close_matches = difflib.get_close_matches(name, name_list, 1)
    hint = f"Did you mean {close_matches[0]}? " if close_matches else ""
    raise DefinitionError(field, f"unknown name {name!r}", f"{hint}Known names: {', '.join(name_list)}")
