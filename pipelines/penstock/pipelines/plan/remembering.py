"""A function with a memory for each key, in the place of a window."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.checks import positive, require
from penstock.pipelines.plan.custom import Opaque, imported, known_by, qualified_name, unchanged
from penstock.pipelines.plan.source import ADDED, Column
from penstock.pipelines.plan.types import check_words

WORDS: Mapping[Any, str] = {
    int: "BIGINT", float: "DOUBLE", str: "STRING", bool: "BOOLEAN", bytes: "BINARY"
}  # fmt: skip
"""Python's types of a state's fields, in Spark's words."""

UNSAID = "it set a timer of the clock, and its pipeline does not say remember(..., clock=True)"
"""What is wrong with a timer that keeps a pipeline from being run over stored records, unless it is declared."""


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
    which nothing was heard for `forget_after` of event time is forgotten without a call. A `vectorised` function
    is handed all keys of a batch at once, and its state is kept in columns. One that sets timers of the `clock`
    says so: what it gives depends on when its records were read, and cannot be found again from records alone.
    """

    function: Opaque
    state: StateType
    returns: tuple[Column, ...]
    forget_after: int | None = None
    vectorised: bool = field(default=False, metadata=ADDED)
    clock: bool = field(default=False, metadata=ADDED)

    def __post_init__(self) -> None:
        fix = "Say what columns the rows have, as in returns={'above': 'DOUBLE'}"
        require(len(self.returns) > 0, "remember.returns", "no columns", fix)
        check_words(self.returns, "remember.returns")
        if self.forget_after is not None:
            positive(self.forget_after, "remember.forget_after")
        if self.vectorised and self.state.kind is not None:
            memory_columns(self.state.kind)


def state_type(kind: type[Any]) -> StateType:
    """Name and fingerprint a class by its fields."""
    fields = tuple(sorted((name, str(hint)) for name, hint in get_type_hints(kind).items()))
    return StateType(qualified_name(kind), known_by(fields, None), kind)


def memory_columns(kind: type[Any]) -> tuple[Column, ...]:
    """The fields of a state as columns. Raises DefinitionError for a field that cannot stand in one."""
    hints = get_type_hints(kind)
    found = tuple(Column(name, _word(hint, f"remember.state.{name}")) for name, hint in hints.items())
    require(
        len(found) > 0, "remember.state", f"{kind.__name__} has no fields", "Give it a field for each column"
    )
    return found


def _word(hint: Any, field: str) -> str:
    """A type in Spark's words; a column may always be empty, so `int | None` is `int`."""
    if get_origin(hint) in (Union, UnionType):
        of = [each for each in get_args(hint) if each is not NoneType]
        if len(of) == 1:
            return _word(of[0], field)
    if get_origin(hint) is list or (get_origin(hint) is tuple and get_args(hint)[1:] == (...,)):
        return f"ARRAY<{_word(get_args(hint)[0], field)}>"
    if hint not in WORDS:
        fix = "Write int, float, str, bool, bytes, a list of one of them, or leave out vectorised"
        raise DefinitionError(field, f"{hint} fits no column", fix)
    return WORDS[hint]
