"""Checks of state classes: a state is stored as MessagePack and decoded by the fields of its class."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec

from penstock.engine.definition.argument_checks import require
from penstock.engine.errors import DefinitionError

STATE_CLASS_HINT = (
    "Give a dataclass of numbers, texts, bytes, times, and of lists, dictionaries and dataclasses of these"
)


def check_state_class(state_class: type[Any]) -> None:
    """Refuse a class whose instances cannot be decoded again. A class without fields is allowed."""
    fields = declared_fields(state_class)
    try:
        msgspec.msgpack.Decoder(state_class)
        type_info = msgspec.inspect.type_info(state_class)
    except TypeError as problem:
        raise DefinitionError(
            "stateful.state", f"{state_class.__name__}: {problem}", STATE_CLASS_HINT
        ) from problem
    if isinstance(type_info, msgspec.inspect.CustomType):
        detail = f"{state_class.__name__} declares {', '.join(fields)}, but is not a dataclass"
        require(not fields, "stateful.state", detail, STATE_CLASS_HINT)
        return
    unsupported_type = next(_iter_unsupported_types(type_info, set()), None)
    require(
        unsupported_type is None,
        "stateful.state",
        f"{state_class.__name__} has a {unsupported_type}",
        STATE_CLASS_HINT,
    )


def declared_fields(state_class: type[Any]) -> dict[str, Any]:
    """Return the fields of a class with their types. Raises DefinitionError if a type is unknown."""
    try:
        return get_type_hints(state_class)
    except NameError as problem:
        raise DefinitionError(
            "stateful.state", f"{state_class.__name__}: {problem}", STATE_CLASS_HINT
        ) from problem


def _iter_unsupported_types(type_info: Any, seen: set[int]) -> Iterator[str]:
    """Yield the names of nested types that cannot be encoded."""
    if id(type_info) in seen:
        return
    seen.add(id(type_info))
    if isinstance(type_info, msgspec.inspect.CustomType):
        yield type_info.cls.__name__
    parts = type_info if isinstance(type_info, tuple) else ()
    if isinstance(type_info, msgspec.inspect.Type | msgspec.inspect.Field):
        parts = tuple(getattr(type_info, name) for name in type_info.__struct_fields__)
    for part in parts:
        yield from _iter_unsupported_types(part, seen)
