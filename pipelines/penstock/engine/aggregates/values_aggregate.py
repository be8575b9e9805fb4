"""Aggregates that are computed from all of their values, because they cannot subtract one."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate import Aggregate, FieldAggregate
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.field_types import require_comparable, require_comparable_elements
from penstock.engine.aggregates.list_columns import ListEntry
from penstock.engine.aggregates.multiset import build_multiset


class ValuesAggregate(Aggregate):
    """An aggregate that stores every value, and computes the result for each pane.

    It needs no state of its own. One that can do with less over records, which are never retracted, overrides
    `build_compact` and `describe_state`.
    """

    @abstractmethod
    def from_elements(self, elements: Sequence[ListEntry]) -> Any:
        """Return the value for these elements, each a tuple of the used fields; there may be none.

        They are ordered by event time and then by their values.
        """

    @property
    def required_field(self) -> str | None:
        """The field that must have a value for an element to count; None if every element counts."""
        return self.used_fields[0]

    @property
    def ordered_fields(self) -> tuple[str, ...]:
        """The fields whose values it compares. The other ones may be lists."""
        return self.used_fields

    @property
    def can_retract(self) -> bool:
        """False: the engine drops a retracted value, and the value is computed again."""
        return False

    def describe_state(self) -> str:
        """Describe that it stores every value."""
        return "all values"

    def build_accumulator(self, context: AggregateContext) -> Accumulator:
        """Build the state of all values, or a compact one where nothing is retracted."""
        return self._build_values(context) if context.over_changes else self.build_compact(context)

    def build_compact(self, context: AggregateContext) -> Accumulator:
        """Build the state over records. The default stores every value."""
        return self._build_values(context)

    def _build_values(self, context: AggregateContext) -> Accumulator:
        result_type = self.result_type(context)
        fields = [pa.field(name, self._stored_type(name, context)) for name in self.used_fields]
        return build_multiset(context, result_type, fields, self.required_field, self.from_elements)

    def _stored_type(self, field: str, context: AggregateContext) -> pa.DataType:
        is_ordered = field in self.ordered_fields
        return (require_comparable if is_ordered else require_comparable_elements)(field, context)


class FieldValuesAggregate(FieldAggregate, ValuesAggregate):
    """An aggregate that is computed from all values of one field that are not null."""

    @abstractmethod
    def from_values(self, values: Sequence[Any]) -> Any:
        """Return the value for these ones, ordered by event time and then by value; there may be none."""

    def from_elements(self, elements: Sequence[ListEntry]) -> Any:
        """Return the value for these elements."""
        return self.from_values([value for (value,) in elements])
