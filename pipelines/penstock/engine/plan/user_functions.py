"""One's own code in a plan: named and fingerprinted, never stored by value."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.engine.errors import DefinitionError
from penstock.engine.plan.code_hash import code_fingerprint

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class Combiner(Protocol):
    """A vectorized aggregate over Arrow: partials per group, merged in any order and any bracketing.

    `groups` holds for each row the number of its group, from 0 to `count - 1`; every answer has `count` rows.
    The functions must be pure: the same input gives the same partial, on whatever machine.
    """

    partial_type: "pa.DataType"
    result_type: "pa.DataType"
    can_subtract: bool

    def add(self, values: "pa.Table", groups: "np.ndarray[Any, Any]", count: int) -> "pa.Array[Any]":
        """Combine rows into one partial per group; a group without rows gets a null."""
        ...

    def merge(self, partials: "pa.Array[Any]", groups: "np.ndarray[Any, Any]", count: int) -> "pa.Array[Any]":
        """Combine partials into one per group; nulls are nothing."""
        ...

    def subtract(self, partials: "pa.Array[Any]", gone: "pa.Array[Any]") -> "pa.Array[Any]":
        """Take the second partial out of the first, row by row; nulls are nothing.

        It is called only where `can_subtract` is true.
        """
        ...

    def result(self, partials: "pa.Array[Any]") -> "pa.Array[Any]":
        """Turn partials into what the pane shows, row by row."""
        ...


@dataclass(frozen=True)
class FunctionRef:
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
        function: Callable[..., Any] = import_by_name(self.name)
        require_unchanged(self.name, self.fingerprint, function_ref(function).fingerprint)
        return function


@dataclass(frozen=True)
class CombinerRef:
    """A combiner that the plan knows by the name of its class and by its fingerprint."""

    name: str
    fingerprint: str
    can_subtract: bool
    combiner: Combiner | None = field(default=None, compare=False, repr=False)

    def resolve(self) -> Combiner:
        """Return the combiner itself; where the plan came from JSON, made new from its class."""
        if self.combiner is not None:
            return self.combiner
        combiner_class = import_by_name(self.name)
        combiner: Combiner = combiner_class() if isinstance(combiner_class, type) else combiner_class
        require_unchanged(self.name, self.fingerprint, combiner_ref(combiner).fingerprint)
        return combiner


def function_ref(function: Callable[..., Any], version: str | None = None) -> FunctionRef:
    """Name and fingerprint a function; `version` stands for its code where the writer keeps count himself."""
    return FunctionRef(qualified_name(function), version_fingerprint(function, version), function)


def combiner_ref(combiner: Combiner, version: str | None = None) -> CombinerRef:
    """Name and fingerprint a combiner by the code of its class and its own attributes."""
    combiner_class = type(combiner)
    methods = tuple(getattr(combiner_class, name) for name in ("add", "merge", "subtract", "result"))
    name = f"{combiner_class.__module__}:{combiner_class.__qualname__}"
    return CombinerRef(
        name, version_fingerprint((methods, vars(combiner)), version), combiner.can_subtract, combiner
    )


def version_fingerprint(code: object, version: str | None) -> str:
    """Return a fingerprint that says whether it stands for the code or for a version."""
    return f"code:{code_fingerprint(code)}" if version is None else f"version:{version}"


def require_unchanged(name: str, stored_fingerprint: str, current_fingerprint: str) -> None:
    """Refuse code that is not what the plan was made with; of a version its writer keeps count."""
    if stored_fingerprint.startswith("code:") and stored_fingerprint != current_fingerprint:
        fix = "Define the pipeline again, and with it the plan"
        raise DefinitionError("apply", f"{name} has changed since the plan was stored", fix)


def qualified_name(function: Callable[..., Any]) -> str:
    """Return `module:name`, by which a plan read back finds the function."""
    module = getattr(function, "__module__", type(function).__module__)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{module}:{name}"


def import_by_name(name: str, location: str = "apply") -> Any:
    """Import `module:name`; a lambda or a local function cannot be found so, and this says what to do.

    `place` is where the name was written.
    """
    module, _, path = name.partition(":")
    try:
        imported_object: Any = importlib.import_module(module)
        for part in path.split("."):
            imported_object = getattr(imported_object, part)
    except (ImportError, AttributeError, ValueError, TypeError) as problem:
        fix = "Define it at the top of a module, so that a stored plan can find it by name"
        raise DefinitionError(location, f"{name} cannot be imported ({problem})", fix) from problem
    return imported_object
