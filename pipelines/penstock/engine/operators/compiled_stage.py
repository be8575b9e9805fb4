"""A stage compiled for execution: trigger machine, accumulators, and the schemas of its tables."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates import Accumulator, AccumulatorPart
from penstock.engine.aggregates.restricted_columns import RestrictedColumn
from penstock.engine.columnar import StateColumn
from penstock.engine.definition.predicates import Predicate
from penstock.engine.operators.joins.state_schema import list_join_columns
from penstock.engine.operators.ordered.state_schema import (
    ELEMENT_FIELDS,
    MATCHED_FIELD,
    WINDOW_NUMBER_FIELD,
    list_ordered_columns,
)
from penstock.engine.operators.stage_columns import (
    CHANGE_COUNT_FIELD,
    PANE_FIELDS,
    PIECE_BOUNDS,
    REPLACED_BY_BOUNDS,
    SESSION_COLUMNS,
    WINDOW_BOUNDS,
    WINDOW_COLUMNS,
    last_pane_column,
)
from penstock.engine.operators.stateful.schema import list_stateful_columns
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, Int64Array
from penstock.engine.triggers.machine import TriggerMachine
from penstock.engine.windows.join_window import JoinWindow
from penstock.engine.windows.order_window import OrderWindow


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
