"""What a function does, as a hash: equal between processes of one Python version, whatever line it stands on.

Counted are its bytecode, constants, defaults, what it closes over, and the constants and functions of its own
module that it names. Code of other modules counts by name alone: a change in a library goes unseen, and a new
Python version makes other bytecode. A version that the writer gives stands in place of all this.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

PLAIN = (str, bytes, int, float, bool, complex, type(None), type(Ellipsis))


def code_fingerprint(function: object) -> str:
    """Return the hash of a function, or of anything that is called like one."""
    digest = hashlib.sha256()
    for word in spelled(function, frozenset()):
        digest.update(word.encode())
        digest.update(b"\x00")
    return digest.hexdigest()[:16]


def spelled(value: Any, above: frozenset[int]) -> Iterator[str]:
    """Spell out a value without addresses in memory; `above` are the values that it is part of."""
    if id(value) in above:
        yield "again"
        return
    inside = above | {id(value)}
    match value:
        case _ if isinstance(value, PLAIN):
            yield repr(value)
        case CodeType():
            yield from spelled_code(value, inside)
        case FunctionType():
            yield from spelled_function(value, inside)
        case MethodType():
            yield from spelled_all((value.__func__, value.__self__), inside)
        case partial():
            yield from spelled_all((value.func, value.args, value.keywords), inside)
        case set() | frozenset():
            yield from sorted("|".join(spelled(item, inside)) for item in value)
        case tuple() | list():
            yield from spelled_all(tuple(value), inside)
        case Mapping():
            yield from sorted("|".join(spelled_all(pair, inside)) for pair in value.items())
        case ModuleType() | BuiltinFunctionType():
            yield value.__name__
        case type():
            yield f"{value.__module__}:{value.__qualname__}"
        case _:
            yield from spelled_object(value, inside)


def spelled_all(values: tuple[Any, ...], above: frozenset[int]) -> Iterator[str]:
    """Spell out several values, and how many."""
    yield f"({len(values)}"
    for value in values:
        yield from spelled(value, above)


def spelled_code(code: CodeType, above: frozenset[int]) -> Iterator[str]:
    """Spell out code, with the code inside it."""
    yield code.co_code.hex()
    yield from code.co_names
    yield from code.co_varnames
    yield from spelled_all(code.co_consts, above)


def spelled_function(function: FunctionType, above: frozenset[int]) -> Iterator[str]:
    """Spell out a function: its code, and the values that it brings with it or finds in its module."""
    yield from spelled_code(function.__code__, above)
    closed = tuple(cell.cell_contents for cell in function.__closure__ or ())
    yield from spelled_all((closed, function.__defaults__ or (), function.__kwdefaults__ or {}), above)
    for name in names_in(function.__code__):
        found = function.__globals__.get(name)
        own = isinstance(found, FunctionType) and found.__module__ == function.__module__
        if own or (name in function.__globals__ and isinstance(found, PLAIN)):
            yield name
            yield from spelled(found, above)


def names_in(code: CodeType) -> list[str]:
    """Return the global names that code uses, with those of the code inside it."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in names_in(part)]
    return sorted({*code.co_names, *inner})


def spelled_object(value: Any, above: frozenset[int]) -> Iterator[str]:
    """Spell out an object by its class, what its class does when it is called, and its attributes."""
    kind = type(value)
    yield f"{kind.__module__}:{kind.__qualname__}"
    call: Callable[..., Any] | None = vars(kind).get("__call__")
    yield from spelled_all((call, getattr(value, "__dict__", {})), above)
