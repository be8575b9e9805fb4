"""A function with a memory for each key, in the place of a window."""

from dataclasses import dataclass, field
from typing import Any, get_type_hints

from penstock.pipelines.plan.checks import positive, require
from penstock.pipelines.plan.custom import Opaque, imported, known_by, qualified_name, unchanged
from penstock.pipelines.plan.source import Column


@dataclass(frozen=True)
class StateType:
    """What a function remembers, known by the name of its class and by its fields."""

    name: str
    fingerprint: str
    kind: type[Any] | None = field(default=None, compare=False, repr=False)

    def resolve(self) -> type[Any]:
        """Return the class itself."""
        if self.kind is not None:
            return self.kind
        found: type[Any] = imported(self.name)
        unchanged(self.name, self.fingerprint, state_type(found).fingerprint)
        return found


@dataclass(frozen=True)
class Remembering:
    """A key's records in the order of their arrival, handed to a function together with what it remembers.

    Nothing is late. Each row that the function gives is a result of its own, at an event time of its own. A key of
    which nothing was heard for `forget_after` of event time is forgotten without a call.
    """

    function: Opaque
    state: StateType
    returns: tuple[Column, ...]
    forget_after: int | None = None

    def __post_init__(self) -> None:
        fix = "Say what columns the rows have, as in returns={'above': 'DOUBLE'}"
        require(len(self.returns) > 0, "remember.returns", "no columns", fix)
        if self.forget_after is not None:
            positive(self.forget_after, "remember.forget_after")


def state_type(kind: type[Any]) -> StateType:
    """Name and fingerprint a class by its fields."""
    fields = tuple(sorted((name, str(hint)) for name, hint in get_type_hints(kind).items()))
    return StateType(qualified_name(kind), known_by(fields, None), kind)
