"""Stateful functions: user functions with keyed state, in place of a window and aggregates."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, TypeAlias, Union, get_args, get_origin

from penstock.engine.definition.argument_checks import (
    require,
    require_name,
    require_one_of,
    require_positive,
    require_type,
)
from penstock.engine.definition.function_signature import (
    CONTAINERS,
    SCALARS,
    require_callable_with,
    require_result_type,
)
from penstock.engine.definition.phrases import format_duration
from penstock.engine.definition.stored_fields import OMITTED_AT_DEFAULT
from penstock.engine.definition.user_functions import (
    FunctionRef,
    import_by_name,
    qualified_name,
    require_unchanged,
    version_fingerprint,
)
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.column_types import check_column_types
from penstock.engine.plan.sources import Column
from penstock.engine.plan.validation.state_classes import check_state_class, declared_fields
from penstock.engine.windows.window import StateRetention, Window

SPARK_TYPES: Mapping[Any, str] = {
    int: "BIGINT", float: "DOUBLE", str: "STRING", bool: "BOOLEAN", bytes: "BINARY"
}  # fmt: skip
"""The Spark SQL type for each Python type of a state field."""

ProcessingOrder: TypeAlias = Literal["arrival", "event_time"]

UNDECLARED_CLOCK_TIMER = (
    "it set a processing-time timer, but its pipeline does not declare stateful(..., clock=True)"
)
"""The error for an undeclared processing-time timer. Such timers cannot be replayed from records alone."""


PASS_THROUGH_FUNCTION = "penstock.engine.functions.pass_through:emit_each_record"  # noqa: S105
"""The function of stages that emit each record as a row."""

SIDE_OUTPUT_COLUMN = "output"
"""The pane column with the side output of a row; null for the main output."""


@dataclass(frozen=True)
class SideOutput:
    """A side output of a stateful function, with its own columns."""

    name: str
    returns: tuple[Column, ...]

    def __post_init__(self) -> None:
        require_name(self.name, "stateful.outputs")
        fix = "Declare the columns of the rows, as in outputs={'refused': {'reason': 'STRING'}}"
        require(len(self.returns) > 0, f"stateful.outputs.{self.name}", "no columns", fix)
        check_column_types(self.returns, f"stateful.outputs.{self.name}")


@dataclass(frozen=True)
class StateType:
    """The class of a function's state, identified by its name and its fields."""

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
class StatefulFunction(Window):
    """A function that gets the records of a key in arrival order, together with the state of the key.

    No record is late. Each row that the function returns is final and has its own event time. The state of a key
    without records for `forget_after` of event time is deleted without a call. A `vectorized` function gets all
    keys of a batch in one call, and its state is stored in columns. A function that sets processing-time timers
    must declare `clock`: its rows depend on when records were read, so they cannot be recomputed from records
    alone.

    With `order` event_time, a record waits until the watermark has passed it, and timers fire between the records
    where they are due. Records behind the watermark are late. The rows of such a function do not depend on batches.
    """

    is_record_ordered: ClassVar[bool] = True
    shows_all_keys: ClassVar[bool] = True
    pane_relation: ClassVar[str] = "Each row is final; it is never corrected."

    function: FunctionRef
    state: StateType
    returns: tuple[Column, ...]
    forget_after: int | None = None
    vectorized: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    clock: bool = field(default=False, metadata=OMITTED_AT_DEFAULT)
    outputs: tuple[SideOutput, ...] = field(default=(), metadata=OMITTED_AT_DEFAULT)
    order: ProcessingOrder = field(default="arrival", metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        fix = "Declare the columns of the rows, as in returns={'above': 'DOUBLE'}"
        require(len(self.returns) > 0, "stateful.returns", "no columns", fix)
        check_column_types(self.returns, "stateful.returns")
        if self.forget_after is not None:
            require_positive(self.forget_after, "stateful.forget_after")
        for name in ("vectorized", "clock"):
            require_type(getattr(self, name), bool, f"stateful.{name}", "Write true or false")
        self._check_order()
        if self.function.function is not None:
            update = "KeyBatchUpdate" if self.vectorized else "KeyUpdate"
            require_callable_with("stateful", self.function.function, "context")
            require_result_type(
                "stateful", self.function.function, (*SCALARS, *CONTAINERS, dict), f"Return a {update}"
            )
        if self.state.state_class is not None:
            (state_columns if self.vectorized else check_state_class)(self.state.state_class)
        names = [output.name for output in self.outputs]
        duplicate_name = next((name for name in names if names.count(name) > 1), "")
        require(
            not duplicate_name,
            f"stateful.outputs.{duplicate_name}",
            "declared twice",
            "Give each output a unique name",
        )
        for output in self.outputs:
            for column in output.returns:
                same_name_column = next(
                    declared_column for declared_column in self.columns if declared_column.name == column.name
                )
                fix = f"Rename it, or use the type that it has elsewhere: {same_name_column.type}"
                location = f"stateful.outputs.{output.name}.{column.name}"
                require(
                    same_name_column.type.upper() == column.type.upper(),
                    location,
                    f"it is {column.type}",
                    fix,
                )

    def _check_order(self) -> None:
        require_one_of(self.order, ("arrival", "event_time"), "stateful.order")
        fix = "Remove vectorized: event-time order processes one instant at a time"
        require(
            not (self.vectorized and self.is_event_time_ordered),
            "stateful.order",
            "event_time with vectorized",
            fix,
        )
        fix = "Remove clock or order: processing-time timers have no position between records"
        require(
            not (self.clock and self.is_event_time_ordered),
            "stateful.order",
            "event_time with processing-time timers",
            fix,
        )

    def describe(self) -> str:
        """Describe the order of records."""
        if self.is_pass_through:
            return "no windows: each record is a row of its own"
        return f"no windows: a key's records in {'event-time' if self.is_event_time_ordered else 'arrival'} order"

    def describe_timing(self, lateness: int) -> tuple[str, ...]:
        """Describe when the function is called."""
        if self.is_pass_through:
            return ("In the batch of the record; no record is late.",)
        if self.is_event_time_ordered:
            return (
                "Records and timers are processed in event-time order, once the watermark has passed them.",
                "Records behind the watermark go to the late table.",
            )
        return (
            "In each batch that has records of the key, and when a timer of the key is due; no record is late.",
        )

    def describe_state(self, lateness: int) -> StateRetention:
        """Describe the state of a key."""
        until = "its function deletes its state"
        if self.forget_after is not None:
            until += f", or it has no record for {format_duration(self.forget_after)} of event time"
        buffered_records = ", and the records ahead of the watermark" if self.is_event_time_ordered else ""
        return StateRetention("keys", f"per key, a {self.state.name} and its timers{buffered_records}", until)

    @property
    def is_event_time_bound(self) -> bool:
        """No row is corrected, but rows may be as old as their records."""
        return False

    @property
    def is_batch_dependent(self) -> bool:
        """Whether the function sets processing-time timers."""
        return self.clock

    @property
    def keeps_state(self) -> bool:
        """Whether the function is more than a pass-through of rows."""
        return not self.is_pass_through

    @property
    def is_event_time_ordered(self) -> bool:
        """Return whether records are processed in event-time order."""
        return self.order == "event_time"

    @property
    def is_pass_through(self) -> bool:
        """Return whether each record is emitted as a row, without state."""
        return self.function.name == PASS_THROUGH_FUNCTION

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return the columns of all outputs; with side outputs, the last column names the output of a row."""
        if not self.outputs:
            return self.returns
        columns_by_name = {column.name: column for column in self.returns}
        for output in self.outputs:
            columns_by_name |= {
                column.name: column for column in output.returns if column.name not in columns_by_name
            }
        return (*columns_by_name.values(), Column(SIDE_OUTPUT_COLUMN, "STRING"))

    def output_columns(self, output: str | None) -> tuple[Column, ...]:
        """Return the columns of a side output, or of the main output without a name."""
        return next(
            (side_output.returns for side_output in self.outputs if side_output.name == output), self.returns
        )

    def output_column_names(self, output: str | None) -> frozenset[str]:
        """Return the column names of an output."""
        return frozenset(column.name for column in self.output_columns(output))

    def has_output(self, output: str | None) -> bool:
        """Return whether the function declares this output."""
        return output is None or output in {side_output.name for side_output in self.outputs}


def state_type(state_class: type[Any]) -> StateType:
    """Return the name of a state class and the fingerprint of its fields."""
    fields = tuple(sorted((name, str(hint)) for name, hint in declared_fields(state_class).items()))
    return StateType(qualified_name(state_class), version_fingerprint(fields, None), state_class)


def state_columns(state_class: type[Any]) -> tuple[Column, ...]:
    """Return the fields of a state class as columns. Raises DefinitionError if a field has no column type."""
    hints = declared_fields(state_class)
    columns = tuple(Column(name, _spark_type(hint, f"stateful.state.{name}")) for name, hint in hints.items())
    require(
        len(columns) > 0,
        "stateful.state",
        f"{state_class.__name__} has no fields",
        "Declare a field for each column",
    )
    return columns


def _spark_type(hint: Any, field: str) -> str:
    """Return the Spark SQL type of a hint. Columns are nullable, so `int | None` is `int`."""
    if get_origin(hint) in (Union, UnionType):
        value_types = [argument for argument in get_args(hint) if argument is not NoneType]
        if len(value_types) == 1:
            return _spark_type(value_types[0], field)
    if get_origin(hint) is list or (get_origin(hint) is tuple and get_args(hint)[1:] == (...,)):
        return f"ARRAY<{_spark_type(get_args(hint)[0], field)}>"
    if hint not in SPARK_TYPES:
        fix = "Write int, float, str, bool, bytes, a list of one of them, or remove vectorized"
        raise DefinitionError(field, f"{hint} has no column type", fix)
    return SPARK_TYPES[hint]
