"""One's own code in a plan: named and fingerprinted, never stored by value."""

import hashlib
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Any, Protocol

from penstock.pipelines.errors import DefinitionError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class Combiner(Protocol):
    """A vectorised aggregate over Arrow: partials per group, merged in any order and any bracketing.

    `groups` holds for each row the number of its group, from 0 to `count - 1`; every answer has `count` rows.
    The functions must be pure: the same input gives the same partial, on whatever machine.
    """

    partial_type: "pa.DataType"
    result_type: "pa.DataType"
    takes_back: bool

    def add(self, values: "pa.Table", groups: "np.ndarray[Any, Any]", count: int) -> "pa.Array[Any]":
        """Combine rows into one partial per group; a group without rows gets a null."""
        ...

    def merge(self, partials: "pa.Array[Any]", groups: "np.ndarray[Any, Any]", count: int) -> "pa.Array[Any]":
        """Combine partials into one per group; nulls are nothing."""
        ...

    def subtract(self, partials: "pa.Array[Any]", gone: "pa.Array[Any]") -> "pa.Array[Any]":
        """Take the second partial out of the first, row by row; called only where `takes_back` is true."""
        ...

    def result(self, partials: "pa.Array[Any]") -> "pa.Array[Any]":
        """Turn partials into what the pane shows, row by row."""
        ...


@dataclass(frozen=True)
class Opaque:
    """A function that the plan knows by name and fingerprint.

    Two plans are equal when name and fingerprint are. A plan that was read back from JSON has no function at
    hand: `resolve` imports it by name.
    """

    name: str
    fingerprint: str
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    def resolve(self) -> Callable[..., Any]:
        """Return the function itself."""
        if self.function is not None:
            return self.function
        found: Callable[..., Any] = imported(self.name)
        return found


@dataclass(frozen=True)
class CombinerRef:
    """A combiner that the plan knows by name and fingerprint."""

    name: str
    fingerprint: str
    takes_back: bool
    combiner: Combiner | None = field(default=None, compare=False, repr=False)

    def resolve(self) -> Combiner:
        """Return the combiner itself, imported by name where the plan came from JSON."""
        if self.combiner is not None:
            return self.combiner
        found: Combiner = imported(self.name)
        return found


def opaque(function: Callable[..., Any], version: str | None = None) -> Opaque:
    """Name and fingerprint a function; `version` stands for its code where the writer keeps count himself."""
    return Opaque(qualified_name(function), version or code_fingerprint(function), function)


def combiner_ref(combiner: Combiner, version: str | None = None) -> CombinerRef:
    """Name and fingerprint a combiner by the code of its class and its own attributes."""
    kind = type(combiner)
    code = "".join(code_fingerprint(getattr(kind, name)) for name in ("add", "merge", "result"))
    settings = repr(sorted(vars(combiner).items()))
    digest = hashlib.sha256((code + settings).encode()).hexdigest()[:16]
    return CombinerRef(
        f"{kind.__module__}:{kind.__qualname__}", version or digest, combiner.takes_back, combiner
    )


def code_fingerprint(function: Callable[..., Any]) -> str:
    """Hash what a function does: its bytecode, constants, names, defaults and what it closes over.

    Equal between processes of one Python version; line numbers and file names do not count.
    """
    digest = hashlib.sha256()
    for part in described(function):
        digest.update(part.encode())
        digest.update(b"\x00")
    return digest.hexdigest()[:16]


def described(function: Callable[..., Any]) -> list[str]:
    """Spell out what makes a function what it is."""
    code = getattr(function, "__code__", None)
    if code is None:
        return [qualified_name(function)]
    cells = getattr(function, "__closure__", None) or ()
    closed = [spelled(cell.cell_contents) for cell in cells]
    defaults = [spelled(value) for value in getattr(function, "__defaults__", None) or ()]
    return [*spelled_code(code), *closed, *defaults]


def spelled_code(code: CodeType) -> list[str]:
    """Spell out a code object, with those inside it."""
    constants = [spelled(value) for value in code.co_consts]
    return [code.co_code.hex(), *code.co_names, *code.co_varnames, *constants]


def spelled(value: object) -> str:
    """Spell out a constant or a closed-over value without addresses in memory."""
    match value:
        case CodeType():
            return "|".join(spelled_code(value))
        case frozenset() | set():
            return "{" + ",".join(sorted(spelled(item) for item in value)) + "}"
        case tuple() | list():
            return "(" + ",".join(spelled(item) for item in value) + ")"
        case _ if callable(value):
            return "|".join(described(value))
        case _:
            return repr(value)


def qualified_name(function: Callable[..., Any]) -> str:
    """Return `module:name`, by which a plan read back finds the function."""
    module = getattr(function, "__module__", type(function).__module__)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{module}:{name}"


def imported(name: str) -> Any:
    """Import `module:name`; a lambda or a local function cannot be found so, and this says what to do."""
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as problem:
        fix = "Define it at the top of a module, so that a stored plan can find it by name"
        raise DefinitionError("apply", f"{name} cannot be imported ({problem})", fix) from problem
    return found
