"""A function with a memory for each key, in the place of a window."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

from penstock.engine.errors import DefinitionError
from penstock.engine.plan.column_types import check_column_types
from penstock.engine.plan.sources import OMITTED_AT_DEFAULT, Column
from penstock.engine.plan.user_functions import (
    FunctionRef,
    import_by_name,
    qualified_name,
    require_unchanged,
    version_fingerprint,
)
from penstock.engine.plan.validation.argument_checks import (
    require,
    require_name,
    require_one_of,
    require_positive,
    require_type,
)
from penstock.engine.plan.validation.state_classes import check_state_class, declared_fields

SPARK_TYPES: Mapping[Any, str] = {
    int: "BIGINT", float: "DOUBLE", str: "STRING", bool: "BOOLEAN", bytes: "BINARY"
}  # fmt: skip
"""Python's types of a state's fields, in Spark's words."""

ProcessingOrder: TypeAlias = Literal["arrival", "event_time"]

UNDECLARED_CLOCK_TIMER = (
    "it set a timer of the clock, and its pipeline does not say stateful(..., clock=True)"
)
"""What is wrong with a timer that keeps a pipeline from being run over stored records, unless it is declared."""


PASS_THROUGH_FUNCTION = "penstock.engine.functions.pass_through:emit_each_record"  # noqa: S105
"""The function of stages that take each record for a row."""

SIDE_OUTPUT_COLUMN = "output"
"""The column of a pane that says to which of a function's outputs it goes; null for its own rows."""


@dataclass(frozen=True)
class SideOutput:
    """Rows that a function sends elsewhere, with columns of their own."""

    name: str
    returns: tuple[Column, ...]

    def __post_init__(self) -> None:
        require_name(self.name, "stateful.outputs")
        fix = "Say what columns the rows have, as in outputs={'refused': {'reason': 'STRING'}}"
        require(len(self.returns) > 0, f"stateful.outputs.{self.name}", "no columns", fix)
        check_column_types(self.returns, f"stateful.outputs.{self.name}")


@dataclass(frozen=True)
class StateType:
    """What a function remembers, known by the name of its class and by its fields."""

    name: str
    fingerprint: str
    state_class: type[Any] | None = field(default=None, compare=False, repr=False)

    def resolve(self) -> type[Any]:
        """Return the class itself."""
        if self.state_class is not None:
            return self.state_class
        state_class: type[Any] = import_by_name(self.name)
        require_unchanged(self.name, self.fingerprint, state_type(state_class).fingerprint)
        return state_class


@dataclass(frozen=True)
class StatefulFunction:
    """A key's records in the order of their arrival, handed to a function together with what it remembers.

    Nothing is late. Each row that the function gives is a result of its own, at an event time of its own. A key of
    which nothing was heard for `forget_after` of event time is forgotten without a call. A `vectorized` function
    is handed all keys of a batch at once, and its state is kept in columns. One that sets timers of the `clock`
    says so: what it gives depends on when its records were read, and cannot be found again from records alone.

    In the `order` of event time a record waits until the watermark has passed it, and timers come where they lie
    between records; what comes behind the watermark is late. What such a function says depends on no batch.
    """

    function: FunctionRef
    state: StateType
    returns: tuple[Column, ...]
    forget_after: int | None = None
    vectorized: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    clock: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    outputs: tuple[SideOutput, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)
    order: ProcessingOrder = field(default="arrival", metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        fix = "Say what columns the rows have, as in returns={'above': 'DOUBLE'}"
        require(len(self.returns) > 0, "stateful.returns", "no columns", fix)
        check_column_types(self.returns, "stateful.returns")
        if self.forget_after is not None:
            require_positive(self.forget_after, "stateful.forget_after")
        for name in ("vectorized", "clock"):
            require_type(getattr(self, name), bool, f"stateful.{name}", "Write true or false")
        self._check_order()
        if self.state.state_class is not None:
            (state_columns if self.vectorized else check_state_class)(self.state.state_class)
        names = [output.name for output in self.outputs]
        duplicate_name = next((name for name in names if names.count(name) > 1), "")
        require(
            not duplicate_name,
            f"stateful.outputs.{duplicate_name}",
            "named twice",
            "Give each output its own name",
        )
        for output in self.outputs:
            for column in output.returns:
                same_name_column = next(
                    declared_column for declared_column in self.columns if declared_column.name == column.name
                )
                fix = f"Give it another name, or the type that it has elsewhere: {same_name_column.type}"
                location = f"stateful.outputs.{output.name}.{column.name}"
                require(
                    same_name_column.type.upper() == column.type.upper(),
                    location,
                    f"it is {column.type}",
                    fix,
                )

    def _check_order(self) -> None:
        require_one_of(self.order, ("arrival", "event_time"), "stateful.order")
        fix = "Leave vectorized out: its records come one instant after the other"
        require(
            not (self.vectorized and self.is_event_time_ordered),
            "stateful.order",
            "event_time, and vectorized",
            fix,
        )
        fix = "Leave clock out, or the order: the clock says nothing of where a timer lies between records"
        require(
            not (self.clock and self.is_event_time_ordered),
            "stateful.order",
            "event_time, and timers of the clock",
            fix,
        )

    @property
    def is_event_time_ordered(self) -> bool:
        """Tell whether records are told in the order of their event time."""
        return self.order == "event_time"

    @property
    def is_pass_through(self) -> bool:
        """Tell whether each record is a row, and nothing is remembered."""
        return self.function.name == PASS_THROUGH_FUNCTION

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of the rows of all outputs, and last, where there are several, which it is."""
        if not self.outputs:
            return self.returns
        columns_by_name = {column.name: column for column in self.returns}
        for output in self.outputs:
            columns_by_name |= {
                column.name: column for column in output.returns if column.name not in columns_by_name
            }
        return (*columns_by_name.values(), Column(SIDE_OUTPUT_COLUMN, "STRING"))

    def output_columns(self, output: str | None) -> tuple[Column, ...]:
        """Return the columns of one output; without a name those of the function's own rows."""
        return next(
            (side_output.returns for side_output in self.outputs if side_output.name == output), self.returns
        )

    def output_column_names(self, output: str | None) -> frozenset[str]:
        """Return the names of these columns."""
        return frozenset(column.name for column in self.output_columns(output))

    def has_output(self, output: str | None) -> bool:
        """Tell whether there is such an output."""
        return output is None or output in {side_output.name for side_output in self.outputs}


def state_type(state_class: type[Any]) -> StateType:
    """Name and fingerprint a class by its fields."""
    fields = tuple(sorted((name, str(hint)) for name, hint in declared_fields(state_class).items()))
    return StateType(qualified_name(state_class), version_fingerprint(fields, None), state_class)


def state_columns(state_class: type[Any]) -> tuple[Column, ...]:
    """The fields of a state as columns. Raises DefinitionError for a field that cannot stand in one."""
    hints = declared_fields(state_class)
    columns = tuple(Column(name, _spark_type(hint, f"stateful.state.{name}")) for name, hint in hints.items())
    require(
        len(columns) > 0,
        "stateful.state",
        f"{state_class.__name__} has no fields",
        "Give it a field for each column",
    )
    return columns


def _spark_type(hint: Any, field: str) -> str:
    """A type in Spark's words; a column may always be empty, so `int | None` is `int`."""
    if get_origin(hint) in (Union, UnionType):
        value_types = [argument for argument in get_args(hint) if argument is not NoneType]
        if len(value_types) == 1:
            return _spark_type(value_types[0], field)
    if get_origin(hint) is list or (get_origin(hint) is tuple and get_args(hint)[1:] == (...,)):
        return f"ARRAY<{_spark_type(get_args(hint)[0], field)}>"
    if hint not in SPARK_TYPES:
        fix = "Write int, float, str, bool, bytes, a list of one of them, or leave out vectorized"
        raise DefinitionError(field, f"{hint} fits no column", fix)
    return SPARK_TYPES[hint]
