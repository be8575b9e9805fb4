"""The words of a YAML definition, and how a word with what follows it becomes a part of a plan.

`{word: value}` calls the function of that name: a mapping gives arguments by name, a list one after the other,
anything else is the only one. A word alone is a call without arguments.
"""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.model import triggers, windows

Word = Callable[..., Any]

TRIGGERS: dict[str, Word] = {
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
POLICIES: dict[str, Word] = {
    "records": windows.records,
    "delta": windows.delta,
    "punctuation": windows.punctuation,
    "elapsed": windows.elapsed,
}
WINDOWS: dict[str, Word] = {
    "fixed": windows.fixed,
    "sliding": windows.sliding,
    "sessions": windows.sessions,
    "calendar": windows.calendar,
    "global": windows.global_window,
    "same": windows.same_windows,
    "between": windows.between,
    "as_of": windows.as_of,
    "tumbling": windows.tumbling,
    "moving": windows.moving,
}
# What stands inside these words is words again, and from which list.
INSIDE: dict[str, dict[str, Word]] = {
    **dict.fromkeys(("after_watermark", "after_any", "after_all", "after_each", "or_finally"), TRIGGERS),
    "repeatedly": TRIGGERS,
    "tumbling": POLICIES,
    "moving": POLICIES,
}


def spoken(node: object, words: Mapping[str, Word], field: str) -> Any:
    """Turn a word, or a word with what follows it, into a part of a plan."""
    word, value = word_and_value(node, words, field)
    inside = INSIDE.get(word)
    place = f"{field}.{word}"
    positional, named = arguments(value, inside)
    if inside is not None:
        positional = [spoken(item, inside, place) for item in positional]
        named = {name: inner(item, inside, f"{place}.{name}") for name, item in named.items()}
    return called(words[word], positional, named, place)


def inner(item: object, words: Mapping[str, Word], field: str) -> Any:
    """Turn what stands inside a word into a part of a plan; null is nothing."""
    return None if item is None else spoken(item, words, field)


def word_and_value(node: object, words: Mapping[str, Word], field: str) -> tuple[str, object]:
    """Take a node apart."""
    if isinstance(node, str):
        return known(node, words, field), None
    if isinstance(node, Mapping) and len(node) == 1:
        ((word, value),) = node.items()
        return known(str(word), words, field), value
    for word in node if isinstance(node, Mapping) else ():
        known(str(word), words, field)
    raise DefinitionError(field, repr(node), f"Write one of: {', '.join(words)}, with what belongs to it")


def arguments(value: object, inside: Mapping[str, Word] | None) -> tuple[list[Any], dict[str, Any]]:
    """Tell which arguments are given by place and which by name."""
    if value is None:
        return [], {}
    if isinstance(value, list):
        return list(value), {}
    if isinstance(value, Mapping) and not (inside and len(value) == 1 and next(iter(value)) in inside):
        return [], {str(name): item for name, item in value.items()}
    return [value], {}


def called(word: Word, positional: list[Any], named: dict[str, Any], field: str) -> Any:
    """Call the word's function, and say what it takes if the arguments do not fit."""
    signature = inspect.signature(word)
    try:
        signature.bind(*positional, **named)
    except TypeError as problem:
        takes = ", ".join(signature.parameters) or "nothing"
        raise DefinitionError(field, str(problem), f"It takes: {takes}") from None
    return word(*positional, **named)


def known(word: str, words: Iterable[str], field: str) -> str:
    """Refuse a word that is not in the list, and offer the nearest."""
    listed = list(words)
    if word in listed:
        return word
    near = difflib.get_close_matches(word, listed, 1)
    hint = f"Did you mean {near[0]}? " if near else ""
    raise DefinitionError(field, f"{word!r} is not known", f"{hint}Known are: {', '.join(listed)}")
