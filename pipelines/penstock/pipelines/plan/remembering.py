"""A function with a memory for each key, in the place of a window."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

from penstock.pipelines.errors import DefinitionError
from penstock.pipelines.plan.check_memory import check_memory, declared
from penstock.pipelines.plan.checks import named, of_kind, one_of, positive, require
from penstock.pipelines.plan.custom import Opaque, imported, known_by, qualified_name, unchanged
from penstock.pipelines.plan.source import ADDED, Column
from penstock.pipelines.plan.types import check_words

WORDS: Mapping[Any, str] = {
    int: "BIGINT", float: "DOUBLE", str: "STRING", bool: "BOOLEAN", bytes: "BINARY"
}  # fmt: skip
"""Python's types of a state's fields, in Spark's words."""

TellingOrder: TypeAlias = Literal["arrival", "event_time"]

UNSAID = "it set a timer of the clock, and its pipeline does not say remember(..., clock=True)"
"""What is wrong with a timer that keeps a pipeline from being run over stored records, unless it is declared."""


PASSING = "penstock.pipelines.passing:each_record"
"""The function of stages that take each record for a row."""

OUTPUT = "output"
"""The column of a pane that says to which of a function's outputs it goes; null for its own rows."""


@dataclass(frozen=True)
class NamedOutput:
    """Rows that a function sends elsewhere, with columns of their own."""

    name: str
    returns: tuple[Column, ...]

    def __post_init__(self) -> None:
        named(self.name, "remember.outputs")
        fix = "Say what columns the rows have, as in outputs={'refused': {'reason': 'STRING'}}"
        require(len(self.returns) > 0, f"remember.outputs.{self.name}", "no columns", fix)
        check_words(self.returns, f"remember.outputs.{self.name}")


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

    In the `order` of event time a record waits until the watermark has passed it, and timers come where they lie
    between records; what comes behind the watermark is late. What such a function says depends on no batch.
    """

    function: Opaque
    state: StateType
    returns: tuple[Column, ...]
    forget_after: int | None = None
    vectorised: bool = field(default=False, metadata=ADDED)
    clock: bool = field(default=False, metadata=ADDED)
    outputs: tuple[NamedOutput, ...] = field(default=(), metadata=ADDED)
    order: TellingOrder = field(default="arrival", metadata=ADDED)

    def __post_init__(self) -> None:
        fix = "Say what columns the rows have, as in returns={'above': 'DOUBLE'}"
        require(len(self.returns) > 0, "remember.returns", "no columns", fix)
        check_words(self.returns, "remember.returns")
        if self.forget_after is not None:
            positive(self.forget_after, "remember.forget_after")
        for name in ("vectorised", "clock"):
            of_kind(getattr(self, name), bool, f"remember.{name}", "Write true or false")
        self._check_order()
        if self.state.kind is not None:
            (memory_columns if self.vectorised else check_memory)(self.state.kind)
        names = [output.name for output in self.outputs]
        twice = next((name for name in names if names.count(name) > 1), "")
        require(not twice, f"remember.outputs.{twice}", "named twice", "Give each output its own name")
        for output in self.outputs:
            for column in output.returns:
                other = next(each for each in self.columns if each.name == column.name)
                fix = f"Give it another name, or the type that it has elsewhere: {other.type}"
                place = f"remember.outputs.{output.name}.{column.name}"
                require(other.type.upper() == column.type.upper(), place, f"it is {column.type}", fix)

    def _check_order(self) -> None:
        one_of(self.order, ("arrival", "event_time"), "remember.order")
        fix = "Leave vectorised out: its records come one instant after the other"
        require(not (self.vectorised and self.by_time), "remember.order", "event_time, and vectorised", fix)
        fix = "Leave clock out, or the order: the clock says nothing of where a timer lies between records"
        require(
            not (self.clock and self.by_time), "remember.order", "event_time, and timers of the clock", fix
        )

    @property
    def by_time(self) -> bool:
        """Tell whether records are told in the order of their event time."""
        return self.order == "event_time"

    @property
    def passes(self) -> bool:
        """Tell whether each record is a row, and nothing is remembered."""
        return self.function.name == PASSING

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the rows of all outputs, and last, where there are several, which it is."""
        if not self.outputs:
            return self.returns
        found = {column.name: column for column in self.returns}
        for output in self.outputs:
            found |= {column.name: column for column in output.returns if column.name not in found}
        return (*found.values(), Column(OUTPUT, "STRING"))

    def columns_to(self, output: str | None) -> tuple[Column, ...]:
        """Return the columns of one output; without a name those of the function's own rows."""
        return next((each.returns for each in self.outputs if each.name == output), self.returns)

    def names_of(self, output: str | None) -> frozenset[str]:
        """Return the names of these columns."""
        return frozenset(column.name for column in self.columns_to(output))

    def sends_to(self, output: str | None) -> bool:
        """Tell whether there is such an output."""
        return output is None or output in {each.name for each in self.outputs}


def state_type(kind: type[Any]) -> StateType:
    """Name and fingerprint a class by its fields."""
    fields = tuple(sorted((name, str(hint)) for name, hint in declared(kind).items()))
    return StateType(qualified_name(kind), known_by(fields, None), kind)


def memory_columns(kind: type[Any]) -> tuple[Column, ...]:
    """The fields of a state as columns. Raises DefinitionError for a field that cannot stand in one."""
    hints = declared(kind)
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
