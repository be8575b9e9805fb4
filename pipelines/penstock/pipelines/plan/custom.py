"""One's own code in a plan: named and fingerprinted, never stored by value."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.code import code_fingerprint

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
        """Take the second partial out of the first, row by row; nulls are nothing.

        It is called only where `takes_back` is true.
        """
        ...

    def result(self, partials: "pa.Array[Any]") -> "pa.Array[Any]":
        """Turn partials into what the pane shows, row by row."""
        ...


@dataclass(frozen=True)
class Opaque:
    """A function that the plan knows by name and fingerprint.

    Two plans are equal when name and fingerprint are. A plan that was read back from JSON has no function at
    hand: `resolve` imports it by name, and refuses one whose code has changed since.
    """

    name: str
    fingerprint: str
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    def resolve(self) -> Callable[..., Any]:
        """Return the function itself."""
        if self.function is not None:
            return self.function
        found: Callable[..., Any] = imported(self.name)
        unchanged(self.name, self.fingerprint, opaque(found).fingerprint)
        return found


@dataclass(frozen=True)
class CombinerRef:
    """A combiner that the plan knows by the name of its class and by its fingerprint."""

    name: str
    fingerprint: str
    takes_back: bool
    combiner: Combiner | None = field(default=None, compare=False, repr=False)

    def resolve(self) -> Combiner:
        """Return the combiner itself; where the plan came from JSON, made new from its class."""
        if self.combiner is not None:
            return self.combiner
        kind = imported(self.name)
        found: Combiner = kind() if isinstance(kind, type) else kind
        unchanged(self.name, self.fingerprint, combiner_ref(found).fingerprint)
        return found


def opaque(function: Callable[..., Any], version: str | None = None) -> Opaque:
    """Name and fingerprint a function; `version` stands for its code where the writer keeps count himself."""
    return Opaque(qualified_name(function), known_by(function, version), function)


def combiner_ref(combiner: Combiner, version: str | None = None) -> CombinerRef:
    """Name and fingerprint a combiner by the code of its class and its own attributes."""
    kind = type(combiner)
    does = tuple(getattr(kind, name) for name in ("add", "merge", "subtract", "result"))
    name = f"{kind.__module__}:{kind.__qualname__}"
    return CombinerRef(name, known_by((does, vars(combiner)), version), combiner.takes_back, combiner)


def known_by(what: object, version: str | None) -> str:
    """Return a fingerprint that says whether it stands for the code or for a version."""
    return f"code:{code_fingerprint(what)}" if version is None else f"version:{version}"


def unchanged(name: str, before: str, now: str) -> None:
    """Refuse code that is not what the plan was made with; of a version its writer keeps count."""
    if before.startswith("code:") and before != now:
        fix = "Define the pipeline again, and with it the plan"
        raise DefinitionError("apply", f"{name} has changed since the plan was stored", fix)


def qualified_name(function: Callable[..., Any]) -> str:
    """Return `module:name`, by which a plan read back finds the function."""
    module = getattr(function, "__module__", type(function).__module__)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{module}:{name}"


def imported(name: str, place: str = "apply") -> Any:
    """Import `module:name`; a lambda or a local function cannot be found so, and this says what to do.

    `place` is where the name was written.
    """
    module, _, path = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError, TypeError) as problem:
        fix = "Define it at the top of a module, so that a stored plan can find it by name"
        raise DefinitionError(place, f"{name} cannot be imported ({problem})", fix) from problem
    return found
