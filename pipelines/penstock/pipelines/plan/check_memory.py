"""What a function may remember: what is kept is packed, and read again by what its class declares."""

from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.checks import require

FIX = "Give a dataclass of numbers, texts, bytes, times, and of lists, dictionaries and dataclasses of these"


def check_memory(kind: type[Any]) -> None:
    """Refuse a class that could never be read again; one that declares nothing may stand for nothing."""
    fields = declared(kind)
    try:
        msgspec.msgpack.Decoder(kind)
        told = msgspec.inspect.type_info(kind)
    except TypeError as problem:
        raise DefinitionError("remember.state", f"{kind.__name__}: {problem}", FIX) from problem
    if isinstance(told, msgspec.inspect.CustomType):
        found = f"{kind.__name__} declares {', '.join(fields)}, and is no dataclass"
        require(not fields, "remember.state", found, FIX)
        return
    foreign = next(_foreign(told, set()), None)
    require(foreign is None, "remember.state", f"{kind.__name__} has a {foreign}", FIX)


def declared(kind: type[Any]) -> dict[str, Any]:
    """Return the fields of a class with their types. DefinitionError for a type that nobody knows."""
    try:
        return get_type_hints(kind)
    except NameError as problem:
        raise DefinitionError("remember.state", f"{kind.__name__}: {problem}", FIX) from problem


def _foreign(told: Any, seen: set[int]) -> Iterator[str]:
    """Yield the names of types inside that cannot be packed."""
    if id(told) in seen:
        return
    seen.add(id(told))
    if isinstance(told, msgspec.inspect.CustomType):
        yield told.cls.__name__
    parts = told if isinstance(told, tuple) else ()
    if isinstance(told, msgspec.inspect.Type | msgspec.inspect.Field):
        parts = tuple(getattr(told, name) for name in told.__struct_fields__)
    for part in parts:
        yield from _foreign(part, seen)
