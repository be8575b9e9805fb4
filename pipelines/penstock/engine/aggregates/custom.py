"""Custom: a user-defined combiner over Arrow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates.accumulator import Accumulator
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.aggregates.aggregate_context import AggregateContext
from penstock.engine.aggregates.combiner_columns import build_combiner_columns, make_elements
from penstock.engine.aggregates.field_types import require_comparable
from penstock.engine.aggregates.list_columns import ListEntry
from penstock.engine.aggregates.multiset import build_multiset
from penstock.engine.columnar import to_python_values
from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.function_signature import require_combiner_methods
from penstock.engine.definition.phrases import join_phrases
from penstock.engine.definition.user_functions import Combiner, CombinerRef, combiner_ref
from penstock.engine.errors import DefinitionError


@dataclass(frozen=True)
class Custom(Aggregate):
    """A user-defined combiner over the named fields."""

    function_name: ClassVar[str] = "combine"

    fields: tuple[str, ...]
    combiner: CombinerRef

    def __post_init__(self) -> None:
        require(len(self.fields) > 0, "aggregate.custom.fields", "none", "Name the fields that it combines")
        if self.combiner.combiner is not None:
            require_combiner_methods(self.combiner.combiner)

    @property
    def used_fields(self) -> tuple[str, ...]:
        """The fields that it combines."""
        return self.fields

    @property
    def can_retract(self) -> bool:
        """Whether the combiner can subtract."""
        return self.combiner.can_subtract

    def describe(self, *, panes: bool = False) -> str:
        """Describe the combiner and its fields."""
        return f"{self.combiner.name} of {join_phrases(list(self.fields))}"

    def describe_state(self) -> str:
        """Describe that it stores one partial of the combiner."""
        return "its partial result"

    def result_type(self, context: AggregateContext) -> pa.DataType:
        """Return the type that the combiner declares."""
        return self.combiner.resolve().result_type

    def build_accumulator(self, context: AggregateContext) -> Accumulator:
        """Build partials of the combiner; all values where it would have to subtract and cannot."""
        combiner = self.combiner.resolve()
        if not context.over_changes or self.can_retract:
            return build_combiner_columns(context, self.fields, combiner)

        def combine_elements(elements: Sequence[ListEntry]) -> Any:
            values = make_elements(elements, self.fields, context)
            partial = combiner.add(values, np.zeros(len(elements), np.int64), 1)
            return to_python_values(combiner.result(partial))[0]

        fields = [pa.field(name, require_comparable(name, context)) for name in self.fields]
        return build_multiset(context, combiner.result_type, fields, None, combine_elements)

    def restrict_to_input(self, input_: str) -> Aggregate:
        """Refuse it: a combiner may count records whose fields are null."""
        fix = "Use the combiner in a stage with one input, or let it ignore nulls and remove of(...)"
        raise DefinitionError("aggregate.of", "a user-defined combiner", fix)


def combine(combiner: Combiner, *fields: str, version: str | None = None) -> Custom:
    """Use a combiner of your own: an aggregate over Arrow arrays.

    Args:
        combiner: an object with the methods of `penstock.engine.definition.user_functions.Combiner`.
        fields: the fields that it reads.
        version: replaces the hash of the combiner's code in the fingerprint of the plan.

    Example:
        aggregate(longest=combine(Longest(), "word"))

    Not promised: that a changed combiner fits an existing state. A changed hash requires a replay.
    """
    is_combiner = not isinstance(combiner, type) and hasattr(combiner, "add")
    fix = "Give an instance of a Combiner, as in combine(Longest(), 'word')"
    require(is_combiner, "aggregate.combine", repr(combiner), fix)
    return Custom(fields, combiner_ref(combiner, version))
