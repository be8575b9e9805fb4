"""Fingerprints of user code: equal in all processes of one Python version, wherever the code is in its file.

A fingerprint covers the bytecode, constants, defaults and closure of a function, and the constants, functions and
classes that it uses from its own module and other user modules (`user_modules`). Code of installed packages counts
by name only.

Not promised: a change in a library is not detected, and a new Python version changes the bytecode. An explicit
version replaces the fingerprint.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from penstock.engine.user_modules import is_user_module

PLAIN_TYPES = (str, bytes, int, float, bool, complex, type(None), type(Ellipsis))


def code_fingerprint(function: object) -> str:
    """Return the hash of a function or another callable."""
    digest = hashlib.sha256()
    for token in tokenize_value(function, frozenset()):
        digest.update(token.encode())
        digest.update(b"\x00")
    return digest.hexdigest()[:16]


def tokenize_value(value: Any, ancestors: frozenset[int]) -> Iterator[str]:
    """Yield tokens for a value, without memory addresses. `ancestors` are the ids of the values that contain it."""
    if id(value) in ancestors:
        yield "again"
        return
    ancestors_and_self = ancestors | {id(value)}
    match value:
        case _ if isinstance(value, PLAIN_TYPES):
            yield repr(value)
        case CodeType():
            yield from tokenize_code(value, ancestors_and_self)
        case FunctionType():
            yield from tokenize_function(value, ancestors_and_self)
        case MethodType():
            yield from tokenize_values((value.__func__, value.__self__), ancestors_and_self)
        case partial():
            yield from tokenize_values((value.func, value.args, value.keywords), ancestors_and_self)
        case set() | frozenset():
            yield from sorted("|".join(tokenize_value(item, ancestors_and_self)) for item in value)
        case tuple() | list():
            yield from tokenize_values(tuple(value), ancestors_and_self)
        case Mapping():
            yield from sorted("|".join(tokenize_values(pair, ancestors_and_self)) for pair in value.items())
        case ModuleType() | BuiltinFunctionType():
            yield value.__name__
        case type():
            yield f"{value.__module__}:{value.__qualname__}"
        case _:
            yield from tokenize_object(value, ancestors_and_self)


def tokenize_values(values: tuple[Any, ...], ancestors: frozenset[int]) -> Iterator[str]:
    """Yield tokens for several values, preceded by their number."""
    yield f"({len(values)}"
    for value in values:
        yield from tokenize_value(value, ancestors)


def tokenize_code(code: CodeType, ancestors: frozenset[int]) -> Iterator[str]:
    """Yield tokens for code and its nested code."""
    yield code.co_code.hex()
    yield from code.co_names
    yield from code.co_varnames
    yield from tokenize_values(code.co_consts, ancestors)


def tokenize_function(function: FunctionType, ancestors: frozenset[int]) -> Iterator[str]:
    """Yield tokens for a function: its code, closure, defaults and the globals that it uses."""
    yield from tokenize_code(function.__code__, ancestors)
    closure_values = tuple(cell.cell_contents for cell in function.__closure__ or ())
    yield from tokenize_values(
        (closure_values, function.__defaults__ or (), function.__kwdefaults__ or {}), ancestors
    )
    used_names = global_names(function.__code__)
    for name in used_names:
        if name in function.__globals__:
            yield from tokenize_global(
                name, function.__globals__[name], function.__module__, used_names, ancestors
            )


def tokenize_global(
    name: str, value: Any, home_module: str, used_names: list[str], ancestors: frozenset[int]
) -> Iterator[str]:
    """Yield tokens for a global of `home_module` if it is a constant or user code."""
    module = getattr(value, "__module__", None)
    if isinstance(value, PLAIN_TYPES) or (
        isinstance(value, FunctionType) and (module == home_module or is_user_module(module or ""))
    ):
        yield name
        yield from tokenize_value(value, ancestors)
    elif isinstance(value, type) and is_user_module(module or ""):
        yield name
        yield from tokenize_class(value, ancestors)
    elif isinstance(value, ModuleType) and is_user_module(value.__name__) and id(value) not in ancestors:
        yield name
        for inner in used_names:
            if inner in vars(value):
                yield from tokenize_global(
                    inner, vars(value)[inner], value.__name__, used_names, ancestors | {id(value)}
                )


def tokenize_class(class_: type, ancestors: frozenset[int]) -> Iterator[str]:
    """Yield tokens for the methods and constants of a class."""
    yield f"{class_.__module__}:{class_.__qualname__}"
    if id(class_) in ancestors:
        return
    for name, value in sorted(vars(class_).items()):
        inner = getattr(value, "__func__", value)
        if isinstance(inner, FunctionType) and inner.__module__ == class_.__module__:
            yield name
            yield from tokenize_value(inner, ancestors | {id(class_)})
        elif isinstance(value, PLAIN_TYPES) and not name.startswith("__"):
            yield name
            yield repr(value)


def global_names(code: CodeType) -> list[str]:
    """Return the global names that code and its nested code use."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in global_names(part)]
    return sorted({*code.co_names, *inner})


def tokenize_object(value: Any, ancestors: frozenset[int]) -> Iterator[str]:
    """Yield tokens for an object: its class, its `__call__` and its attributes."""
    class_ = type(value)
    yield f"{class_.__module__}:{class_.__qualname__}"
    call: Callable[..., Any] | None = vars(class_).get("__call__")
    yield from tokenize_values((call, getattr(value, "__dict__", {})), ancestors)
