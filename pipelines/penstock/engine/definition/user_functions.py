"""User code in a plan: referenced by name and fingerprint, never stored by value."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from penstock.core.errors import ReferenceImportError
from penstock.core.imports import import_reference
from penstock.engine.definition.code_hash import code_fingerprint
from penstock.engine.errors import DefinitionError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa


class Combiner(Protocol):
    """A vectorized user-defined aggregate over Arrow. Partials are merged in any order and grouping.

    `groups` has the group number of each row, from 0 to `count - 1`. Every result has `count` rows. The methods
    must be pure: the same input gives the same result on every machine.
    """

    partial_type: "pa.DataType"
    result_type: "pa.DataType"
    can_subtract: bool

    def add(self, values: "pa.Table", groups: "np.ndarray[Any, Any]", count: int) -> "pa.Array[Any]":
        """Combine rows into one partial per group. A group without rows gets a null."""
        ...

    def merge(self, partials: "pa.Array[Any]", groups: "np.ndarray[Any, Any]", count: int) -> "pa.Array[Any]":
        """Merge partials into one per group. Nulls are ignored."""
        ...

    def subtract(self, partials: "pa.Array[Any]", gone: "pa.Array[Any]") -> "pa.Array[Any]":
        """Subtract the second partial from the first, row by row. Nulls are ignored.

        Called only if `can_subtract` is true.
        """
        ...

    def result(self, partials: "pa.Array[Any]") -> "pa.Array[Any]":
        """Convert partials to result values, row by row."""
        ...


@dataclass(frozen=True)
class FunctionRef:
    """A reference to a user function by name and fingerprint.

    References are equal if name and fingerprint are. A plan that is read from JSON has no function object:
    `resolve` imports it by name, and refuses a function whose code has changed.
    """

    name: str
    fingerprint: str
    function: Callable[..., Any] | None = field(default=None, compare=False, repr=False)

    def resolve(self) -> Callable[..., Any]:
        """Return the function."""
        if self.function is not None:
            return self.function
        function: Callable[..., Any] = import_by_name(self.name)
        require_unchanged(self.name, self.fingerprint, function_ref(function).fingerprint)
        return function


@dataclass(frozen=True)
class CombinerRef:
    """A reference to a combiner by the name of its class and its fingerprint."""

    name: str
    fingerprint: str
    can_subtract: bool
    combiner: Combiner | None = field(default=None, compare=False, repr=False)

    def resolve(self) -> Combiner:
        """Return the combiner. A plan that is read from JSON creates it from its class."""
        if self.combiner is not None:
            return self.combiner
        combiner_class = import_by_name(self.name)
        combiner: Combiner = combiner_class() if isinstance(combiner_class, type) else combiner_class
        require_unchanged(self.name, self.fingerprint, combiner_ref(combiner).fingerprint)
        return combiner


def function_ref(function: Callable[..., Any], version: str | None = None) -> FunctionRef:
    """Return a reference to a function. `version` replaces the hash of its code if it is given."""
    return FunctionRef(qualified_name(function), version_fingerprint(function, version), function)


def combiner_ref(combiner: Combiner, version: str | None = None) -> CombinerRef:
    """Return a reference to a combiner. Its fingerprint covers the code of its class and its attributes."""
    combiner_class = type(combiner)
    methods = tuple(getattr(combiner_class, name) for name in ("add", "merge", "subtract", "result"))
    name = f"{combiner_class.__module__}:{combiner_class.__qualname__}"
    return CombinerRef(
        name, version_fingerprint((methods, vars(combiner)), version), combiner.can_subtract, combiner
    )


def version_fingerprint(code: object, version: str | None) -> str:
    """Return a fingerprint of the code, or of the version if it is given."""
    return f"code:{code_fingerprint(code)}" if version is None else f"version:{version}"


def require_unchanged(name: str, stored_fingerprint: str, current_fingerprint: str) -> None:
    """Refuse code that has changed since the plan was stored. Explicit versions are not compared."""
    if stored_fingerprint.startswith("code:") and stored_fingerprint != current_fingerprint:
        fix = "Create the plan from the pipeline again"
        raise DefinitionError("apply", f"{name} has changed since the plan was stored", fix)


def qualified_name(function: Callable[..., Any]) -> str:
    """Return `module:name`, from which a stored plan imports the function."""
    module = getattr(function, "__module__", type(function).__module__)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{module}:{name}"


def import_by_name(name: str, location: str = "apply") -> Any:
    """Import `module:name`. Raises DefinitionError if it fails, as for lambdas and local functions."""
    try:
        return import_reference(name)
    except ReferenceImportError as problem:
        fix = "Define it at the top of a module, so that a stored plan can find it by name"
        raise DefinitionError(location, f"{name} cannot be imported ({problem})", fix) from problem
