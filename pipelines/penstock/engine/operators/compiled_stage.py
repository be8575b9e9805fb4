"""A stage compiled for execution: trigger machine, accumulators, and the schemas of its tables."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates import Accumulator, AccumulatorPart, AggregateContext
from penstock.engine.aggregates.restricted_columns import RestrictedColumn
from penstock.engine.columnar import StateColumn
from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.predicates import Predicate
from penstock.engine.errors import DefinitionError
from penstock.engine.operators.joins.state_schema import list_join_columns
from penstock.engine.operators.ordered.state_schema import (
    ELEMENT_FIELDS,
    MATCHED_FIELD,
    WINDOW_NUMBER_FIELD,
    list_ordered_columns,
    list_record_fields,
)
from penstock.engine.operators.stateful.schema import list_result_columns, list_stateful_columns
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.column_types import SCALAR_KEY_HINT
from penstock.engine.plan.field_usage import iter_used_fields
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import step_kind
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, Int64Array
from penstock.engine.triggers.machine import TriggerColumnNames, TriggerMachine
from penstock.engine.windows.join_window import JoinWindow
from penstock.engine.windows.order_window import OrderWindow

WINDOW_BOUNDS = (pa.field("window_start", pa.int64()), pa.field("window_end", pa.int64()))

WINDOW_COLUMNS = (
    StateColumn("records", pa.int64(), 0),
    StateColumn("elements_since_pane", pa.int64(), 0),
    StateColumn("panes", pa.int32(), 0),
    StateColumn("on_time_panes", pa.int32(), 0),
    StateColumn("past_end", pa.bool_(), initial=False),
    StateColumn("finished", pa.bool_(), initial=False),
    StateColumn("has_pane", pa.bool_(), initial=False),
    StateColumn("last_pane_records", pa.int64(), 0),
)
"""State columns of every window: its elements, those since the last pane, its panes, and what the last pane
showed.
"""

SESSION_COLUMNS = (
    StateColumn("finished_at_end", pa.bool_(), initial=False),
    StateColumn("pending_for_start", pa.int64(), MAX_TIMESTAMP_MS),
)
"""Additional state columns of sessions.

`finished_at_end` marks a session that finished because its end passed; a merge that moves the end reopens it.
`pending_for_start` is MAX_TIMESTAMP_MS for a session. For a merged window whose panes are not yet retracted, it is
the start of the session that must retract them.
"""

PIECE_BOUNDS = (pa.field("piece_start", pa.int64()), pa.field("piece_end", pa.int64()))
"""The bounds covered by the records of a partial, each record from its time to its time plus the gap."""

REPLACED_BY_BOUNDS = (pa.field("replaced_by_start", pa.int64()), pa.field("replaced_by_end", pa.int64()))
"""The session that replaces a window, where panes are not retracted."""

CHANGE_COUNT_FIELD = pa.field("change_count", pa.int64())
"""The number of changes in a partial, additions and retractions alike. Triggers count these."""

PANE_FIELDS = (
    *WINDOW_BOUNDS,
    pa.field("pane", pa.int32()),
    pa.field("timing", pa.string()),
    pa.field("on_time_index", pa.int32()),
    pa.field("final", pa.bool_()),
    pa.field("kind", pa.string()),
    pa.field("records", pa.int64()),
    pa.field("batch_id", pa.int64()),
    pa.field("batch_clock", pa.int64()),
    pa.field("watermark", pa.int64()),
)
"""The columns of every pane, after its key and its values. Times are milliseconds."""


@dataclass(frozen=True)
class CompiledStage:
    """What the operators need to know of a stage, computed once."""

    plan: Stage
    trigger_machine: TriggerMachine
    accumulators: tuple[Accumulator, ...]
    key: tuple[pa.Field, ...]
    record_fields: tuple[pa.Field, ...] = ()
    """The record fields that the stage reads, for windows that process single records."""
    reads_changes: bool = False
    """Whether the stage reads the panes of other stages, some of which retract earlier ones."""
    restricted_columns: tuple[RestrictedColumn, ...] = ()
    """Columns that have values only for elements of one input, for aggregates over that input."""

    @property
    def result_fields(self) -> list[pa.Field]:
        """The result columns that a reader sees beside key and window."""
        join = self.plan.join
        if join is None:
            return [pa.field(each.output, each.type) for each in self.accumulators]
        accumulator_by_input = dict(zip((join.left, join.right), self.accumulators, strict=True))
        return [
            pa.field(each.name, accumulator_by_input[each.input].type.value_type.field(each.field).type)
            for each in join.columns
        ]

    @property
    def parts(self) -> list[AccumulatorPart]:
        """Every column that the aggregates store."""
        return [part for accumulator in self.accumulators for part in accumulator.parts]

    @property
    def window_schema(self) -> pa.Schema:
        """The columns that identify a window: key and bounds."""
        return pa.schema([*self.key, *WINDOW_BOUNDS])

    @property
    def merged_columns(self) -> list[str]:
        """The columns of a partial that are merged into a window."""
        identity_columns = {*self.window_schema.names, *(field.name for field in PIECE_BOUNDS)}
        return [name for name in self.partial_schema.names if name not in identity_columns]

    def closes_at(self, end: Int64Array) -> Int64Array:
        """Return the watermark at which windows close. A window without an end closes at the end of input."""
        lateness = self.plan.lateness
        return np.where(end >= MAX_TIMESTAMP_MS - lateness, MAX_TIMESTAMP_MS, end + lateness)

    @property
    def has_merging_windows(self) -> bool:
        """Whether its windows can grow and merge, as sessions do."""
        return self.plan.window.merge_gap is not None

    @property
    def is_ordered(self) -> bool:
        """Whether it processes the records of a key one by one, in order."""
        return self.plan.window.is_record_ordered

    @property
    def has_window_numbers(self) -> bool:
        """Whether windows are numbered per key. Their bounds alone do not identify them."""
        return isinstance(self.plan.window, OrderWindow)

    @property
    def uses_processing_time(self) -> bool:
        """Whether the batch clock, not the watermark, closes its windows."""
        return self.plan.window.uses_processing_time

    @property
    def is_retracting(self) -> bool:
        """Whether the state stores the values of the last pane, to retract them."""
        return self.plan.accumulation == "retracting"

    @property
    def last_pane_columns(self) -> list[StateColumn]:
        """State columns with what the aggregates held at the last pane, so that its values can be retracted."""
        return [
            StateColumn(last_pane_column(part.name), part.type, part.state_column.initial)
            for part in self.parts
        ]

    @property
    def stored_columns(self) -> list[StateColumn]:
        """Every state column of a window, with its initial value."""
        if isinstance(self.plan.window, StatefulFunction):
            return list_stateful_columns(self.plan.window, self.record_fields)
        if isinstance(self.plan.window, JoinWindow):
            return list_join_columns(self.plan.window, self.record_fields)
        if isinstance(self.plan.window, ChangelogWindows):
            return []
        if isinstance(self.plan.window, OrderWindow):
            field_types = {field.name: field.type for field in (*self.key, *self.record_fields)}
            return [
                *list_ordered_columns(self.plan.window, field_types),
                *(part.state_column for part in self.parts),
            ]
        sessions = SESSION_COLUMNS if self.has_merging_windows else ()
        state_columns = [
            *WINDOW_COLUMNS,
            *sessions,
            *self.trigger_machine.state_columns(),
            *(part.state_column for part in self.parts),
        ]
        return [*state_columns, *self.last_pane_columns] if self.is_retracting else state_columns

    @property
    def element_columns(self) -> list[str]:
        """The columns of an element of an order window, stored or new."""
        return [
            *(part.name for part in self.parts),
            "records",
            "arrival_clock",
            "matched",
            "window_start",
            "window_end",
        ]

    @property
    def state_schema(self) -> pa.Schema:
        """The schema of the stage's state, without the header columns that every state has."""
        return pa.schema(
            [
                *self.key,
                *WINDOW_BOUNDS,
                *(pa.field(state_column.name, state_column.type) for state_column in self.stored_columns),
            ]
        )

    @property
    def pane_schema(self) -> pa.Schema:
        """The schema of panes: key, values, and the columns of every pane."""
        replaced_by = REPLACED_BY_BOUNDS if self.has_merging_windows and not self.is_retracting else ()
        window_number = (WINDOW_NUMBER_FIELD,) if self.has_window_numbers else ()
        return pa.schema([*self.key, *self.result_fields, *PANE_FIELDS, *replaced_by, *window_number])

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The predicates of the trigger. A partial counts the matches of predicate i in `matches_i`."""
        return self.plan.trigger.punctuation

    @property
    def partial_schema(self) -> pa.Schema:
        """The schema of partials: key, bounds, element count, and every part of every aggregate.

        For order windows it is the schema of records: key, time, address, and the fields that the stage
        reads.
        """
        if self.is_ordered:
            matched_fields = () if self.plan.window.record_condition is None else (MATCHED_FIELD,)
            return pa.schema([*self.key, *ELEMENT_FIELDS, *matched_fields, *self.record_fields])
        match_fields = [pa.field(f"matches_{i}", pa.int64()) for i, _ in enumerate(self.predicates)]
        part_fields = [pa.field(part.name, part.type) for part in self.parts]
        piece_fields = PIECE_BOUNDS if self.has_merging_windows else ()
        change_count = (CHANGE_COUNT_FIELD,) if self.reads_changes else ()
        element_count = pa.field("elements", pa.int64())
        return pa.schema(
            [
                *self.key,
                *WINDOW_BOUNDS,
                *piece_fields,
                element_count,
                *change_count,
                *match_fields,
                *part_fields,
            ]
        )


def compile_stage(
    stage: Stage, field_types: Mapping[str, pa.DataType], *, reads_changes: bool = False
) -> CompiledStage:
    """Compile a stage over input fields of these types. Set `reads_changes` if its inputs are other stages."""
    refuse_unknown_fields(stage, field_types)
    has_several_inputs = len(stage.inputs) > 1
    restricted_columns = tuple(
        dict.fromkeys(column for output in stage.aggregates for column in output.aggregate.restricted_columns)
    )
    field_types = {
        **field_types,
        **{
            restricted.name: pa.bool_() if restricted.field is None else field_types[restricted.field]
            for restricted in restricted_columns
        },
    }
    aggregates = (
        output.aggregate.build_accumulator(
            AggregateContext(
                output.name, field_types, reads_changes, has_several_inputs and not reads_changes
            )
        )
        for output in stage.aggregates
    )
    for name in stage.key:
        is_simple = not pa.types.is_nested(field_types[name])
        require(
            is_simple,
            "key",
            f"{name!r} of stage {stage.name} has the type {field_types[name]}",
            SCALAR_KEY_HINT,
        )
    accumulators = (
        aggregates
        if not isinstance(stage.window, StatefulFunction | ChangelogWindows)
        else list_result_columns(stage.window)
    )
    return CompiledStage(
        stage,
        stage.trigger.create_machine(TriggerColumnNames()),
        tuple(accumulators),
        tuple(pa.field(name, field_types[name]) for name in stage.key),
        list_record_fields(stage, field_types) if stage.window.is_record_ordered else (),
        reads_changes,
        restricted_columns,
    )


def refuse_unknown_fields(stage: Stage, field_types: Mapping[str, pa.DataType]) -> None:
    """Raise DefinitionError for a field that the stage uses but that does not exist after its steps."""
    for input_ in stage.inputs:
        for yaml_path, name in iter_used_fields(stage, input_):
            if name not in field_types:
                steps = [*stage.steps_of_input(input_), *stage.steps]
                after_step = f" after its {step_kind(steps[-1])} step" if steps else ""
                available = sorted(column for column in field_types if not column.startswith("_"))
                nearest = get_close_matches(name, available, 1)
                did_you_mean = f"Did you mean {nearest[0]!r}? " if nearest else ""
                raise DefinitionError(
                    yaml_path,
                    f"{name!r} is not a column of {input_}{after_step}, but stage {stage.name} uses it",
                    f"{did_you_mean}Available columns: {', '.join(available)}",
                )


def last_pane_column(part: str) -> str:
    """Return the state column that stores what a part held at the last pane.

    Part names end with a suffix, so no part of another output has this name.
    """
    return f"{part}@last_pane"
