"""What a function does, as a hash: equal between processes of one Python version, whatever line it stands on.

Counted are its bytecode, constants, defaults, what it closes over, and what it names of its own module and of
other modules of one's own (`own_modules`): constants, functions, classes with what they do. Code of installed
packages counts by name alone: a change in a library goes unseen, and a new Python version makes other bytecode. A
version that the writer gives stands in place of all this.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from penstock.pipelines.own_modules import is_own

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
    used = names_in(function.__code__)
    for name in used:
        if name in function.__globals__:
            yield from spelled_global(name, function.__globals__[name], function.__module__, used, above)


def spelled_global(name: str, found: Any, home: str, used: list[str], above: frozenset[int]) -> Iterator[str]:
    """Spell out what a name of a module stands for, where it is plain or one's own; `home` is that module."""
    module = getattr(found, "__module__", None)
    if isinstance(found, PLAIN) or (
        isinstance(found, FunctionType) and (module == home or is_own(module or ""))
    ):
        yield name
        yield from spelled(found, above)
    elif isinstance(found, type) and is_own(module or ""):
        yield name
        yield from spelled_class(found, above)
    elif isinstance(found, ModuleType) and is_own(found.__name__) and id(found) not in above:
        yield name
        for inner in used:
            if inner in vars(found):
                yield from spelled_global(
                    inner, vars(found)[inner], found.__name__, used, above | {id(found)}
                )


def spelled_class(kind: type, above: frozenset[int]) -> Iterator[str]:
    """Spell out a class by what it does, and the plain values that it has."""
    yield f"{kind.__module__}:{kind.__qualname__}"
    if id(kind) in above:
        return
    for name, value in sorted(vars(kind).items()):
        inner = getattr(value, "__func__", value)
        if isinstance(inner, FunctionType) and inner.__module__ == kind.__module__:
            yield name
            yield from spelled(inner, above | {id(kind)})
        elif isinstance(value, PLAIN) and not name.startswith("__"):
            yield name
            yield repr(value)


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
