"""The base class of aggregates: everything that the engine asks of one."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.restricted_columns import RestrictedColumn
from penstock.engine.definition.argument_checks import require_name
from penstock.engine.errors import DefinitionError

AGGREGATE_HINT = "Give an aggregate, as in count() or mean('temperature')"


class Aggregate(ABC):
    """How the elements of a window become one value. A subclass is a frozen dataclass, and part of a plan."""

    function_name: ClassVar[str]
    """The name of its function in definitions, for errors and descriptions."""

    @property
    @abstractmethod
    def used_fields(self) -> tuple[str, ...]:
        """The fields of a record that it reads."""

    @abstractmethod
    def describe(self, *, panes: bool = False) -> str:
        """Describe the value for `explain`, as in `mean of temperature`; `panes` if the stage reads panes."""

    @abstractmethod
    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type of the value; raise `context.error(...)` for fields of types that it does not support."""

    @abstractmethod
    def build_accumulator(self, context: AggregateContext) -> Accumulator:
        """Build its state columns for each window. With `context.over_changes`, elements are retracted as well."""

    @property
    def can_retract(self) -> bool:
        """Whether it subtracts a retracted element. Otherwise, a stage over panes stores every value."""
        return True

    @property
    def needs_arrival_order(self) -> bool:
        """Whether the value depends on the order in which records arrive. Such a stage has one topic as input."""
        return False

    @property
    def is_reproducible(self) -> bool:
        """Whether the same records always give the same value. The audit compares no other values."""
        return True

    @property
    def visible_fields(self) -> tuple[str, ...]:
        """The fields whose values it shows: if one is personal, so is its column. The default never misses one."""
        return self.used_fields

    def describe_state(self) -> str:
        """Describe what it stores for each window, for `explain`."""
        return "a few numbers"

    def describe_call(self) -> str:
        """Describe it as in a definition, for example `mean(temperature)`."""
        return f"{self.function_name}({', '.join(self.used_fields)})"

    def check_column_types(self, column_types: Mapping[str, str | None], location: str) -> None:  # noqa: B027
        """Raise DefinitionError if a field is known to have a SQL type that it does not support.

        This check finds an error when a pipeline is defined; `result_type` finds all when the stream starts.
        """

    @property
    def restricted_input(self) -> str | None:
        """The input to which it is restricted, if any."""
        return None

    @property
    def restricted_columns(self) -> tuple[RestrictedColumn, ...]:
        """The columns that its restriction to one input needs."""
        return ()

    def restrict_to_input(self, input_: str) -> "Aggregate":
        """Return the same aggregate over columns that are null for elements of other inputs.

        Raise DefinitionError if that is not possible, which is the default.
        """
        fix = f"Use {self.function_name} in a stage with one input"
        raise DefinitionError("aggregate.of", f"{self.function_name} cannot be restricted to one input", fix)


@dataclass(frozen=True)
class FieldAggregate(Aggregate):
    """An aggregate over the values of one field that are not null."""

    field: str

    def __post_init__(self) -> None:
        require_name(self.field, f"aggregate.{self.function_name}")

    @property
    def used_fields(self) -> tuple[str, ...]:
        """The field."""
        return (self.field,)

    def restrict_to_input(self, input_: str) -> Self:
        """Return it over the field's values of one input."""
        return replace(self, field=RestrictedColumn(input_, self.field).name)
