"""A stage made ready to be folded: its trigger as a machine, its aggregates as columns, its tables' schemas."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.engine.aggregates import Accumulator, AccumulatorPart, build_accumulator
from penstock.engine.aggregates.per_input import (
    RestrictedColumn,
    collect_restricted_columns,
    use_restricted_columns,
)
from penstock.engine.columnar import StateColumn
from penstock.engine.errors import DefinitionError
from penstock.engine.operators.joins.state_schema import list_join_columns
from penstock.engine.operators.ordered.state_schema import (
    ELEMENT_FIELDS,
    MATCHED_FIELD,
    WINDOW_NUMBER_FIELD,
    find_punctuation,
    list_ordered_columns,
    list_record_fields,
)
from penstock.engine.operators.stateful.schema import list_result_columns, list_stateful_columns
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.column_types import SCALAR_KEY_HINT
from penstock.engine.plan.field_usage import iter_used_fields
from penstock.engine.plan.predicates import Predicate
from penstock.engine.plan.stages import Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import step_kind
from penstock.engine.plan.triggers import punctuation_predicates
from penstock.engine.plan.validation.argument_checks import require
from penstock.engine.plan.windows import (
    JoinWindow,
    OrderWindow,
    Sessions,
    is_processing_time,
    is_record_ordered,
)
from penstock.engine.state.header_columns import MAX_TIMESTAMP_MS, Int64Array
from penstock.engine.triggers.base import TriggerMachine
from penstock.engine.triggers.compiler import compile_trigger

WINDOW_BOUNDS = (pa.field("window_start", pa.int64()), pa.field("window_end", pa.int64()))

WINDOW_COLUMNS = (
    StateColumn("records", pa.int64(), 0),
    StateColumn("unshown", pa.int64(), 0),
    StateColumn("panes", pa.int32(), 0),
    StateColumn("on_time_panes", pa.int32(), 0),
    StateColumn("past_end", pa.bool_(), initial=False),
    StateColumn("finished", pa.bool_(), initial=False),
    StateColumn("shown", pa.bool_(), initial=False),
    StateColumn("shown_records", pa.int64(), 0),
)
"""What is kept of every window: elements, those since the last pane, how many panes came, and what they said."""

SESSION_COLUMNS = (
    StateColumn("finished_at_end", pa.bool_(), initial=False),
    StateColumn("owed_to", pa.int64(), MAX_TIMESTAMP_MS),
)
"""What is kept of sessions besides.

A session that finished because its end had passed goes on when a merge moves its end. `owed_to` is NEVER for a
session; a window that was swallowed and whose panes still stand names by it the start of the session that is to
take them back.
"""

PIECE_BOUNDS = (pa.field("piece_start", pa.int64()), pa.field("piece_end", pa.int64()))
"""The bounds that the records of a partial reach, each from its time to a gap later."""

REPLACED_BY_BOUNDS = (pa.field("replaced_by_start", pa.int64()), pa.field("replaced_by_end", pa.int64()))
"""The session that stands for a window from now on, where nothing is taken back."""

CHANGE_COUNT_FIELD = pa.field("news", pa.int64())
"""How many changes a partial brings, whether they add elements or take some back: what a trigger counts."""

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
"""The columns that every pane has, after its key and its values; times are milliseconds in the fold."""


@dataclass(frozen=True)
class CompiledStage:
    """What the fold needs to know of a stage, worked out once."""

    plan: Stage
    trigger_machine: TriggerMachine
    accumulators: tuple[Accumulator, ...]
    key: tuple[pa.Field, ...]
    record_fields: tuple[pa.Field, ...] = ()
    """The fields of single records that it needs, for order windows."""
    reads_changes: bool = False
    """Whether it reads the panes of other stages, of which some may take back what others brought."""
    restricted_columns: tuple[RestrictedColumn, ...] = ()
    """Columns that elements of one input alone have, for aggregates over them."""

    @property
    def result_fields(self) -> list[pa.Field]:
        """The columns that people see beside key and window."""
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
        """Every column that its aggregates keep."""
        return [part for accumulator in self.accumulators for part in accumulator.parts]

    @property
    def window_schema(self) -> pa.Schema:
        """What says which window a row is about: its key and its bounds."""
        return pa.schema([*self.key, *WINDOW_BOUNDS])

    @property
    def merged_columns(self) -> list[str]:
        """The columns of a partial that are counted in."""
        identity_columns = {*self.window_schema.names, *(field.name for field in PIECE_BOUNDS)}
        return [name for name in self.partial_schema.names if name not in identity_columns]

    def closes_at(self, end: Int64Array) -> Int64Array:
        """The watermark at which windows close; a window without an end closes when its input has ended."""
        lateness = self.plan.lateness
        return np.where(end >= MAX_TIMESTAMP_MS - lateness, MAX_TIMESTAMP_MS, end + lateness)

    @property
    def has_merging_windows(self) -> bool:
        """Whether its windows grow and become one: sessions."""
        return isinstance(self.plan.window, Sessions)

    @property
    def is_ordered(self) -> bool:
        """Whether it takes a key's records one by one, in their order."""
        return is_record_ordered(self.plan.window)

    @property
    def has_window_numbers(self) -> bool:
        """Whether a key's windows have numbers, beside bounds that others may have too."""
        return isinstance(self.plan.window, OrderWindow)

    @property
    def uses_processing_time(self) -> bool:
        """Whether its windows are cut by the batch clock."""
        return is_processing_time(self.plan.window)

    @property
    def is_retracting(self) -> bool:
        """Whether it must remember what it showed."""
        return self.plan.accumulation == "retracting"

    @property
    def last_pane_columns(self) -> list[StateColumn]:
        """What the aggregates held at the last pane, so that its values can be taken back."""
        return [
            StateColumn(last_pane_column(part.name), part.type, part.state_column.initial)
            for part in self.parts
        ]

    @property
    def stored_columns(self) -> list[StateColumn]:
        """Every column that a window begins with."""
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
        """What is known of an element of an order window, held or just come."""
        return [
            *(part.name for part in self.parts),
            "records",
            "came",
            "matched",
            "window_start",
            "window_end",
        ]

    @property
    def state_schema(self) -> pa.Schema:
        """What the state keeps of a window, beside the columns that every state has."""
        return pa.schema(
            [
                *self.key,
                *WINDOW_BOUNDS,
                *(pa.field(state_column.name, state_column.type) for state_column in self.stored_columns),
            ]
        )

    @property
    def pane_schema(self) -> pa.Schema:
        """The schema of panes: key, values, and what every pane has."""
        replaced_by = REPLACED_BY_BOUNDS if self.has_merging_windows and not self.is_retracting else ()
        window_number = (WINDOW_NUMBER_FIELD,) if self.has_window_numbers else ()
        return pa.schema([*self.key, *self.result_fields, *PANE_FIELDS, *replaced_by, *window_number])

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The conditions that its trigger looks for; a partial counts the matches of the i-th as `matches_i`."""
        return punctuation_predicates(self.plan.trigger)

    @property
    def partial_schema(self) -> pa.Schema:
        """What Spark sends: key, bounds, elements, and every part of every aggregate.

        For order windows it sends the records themselves: their key, time, offset, and the fields that matter.
        """
        if self.is_ordered:
            matched_fields = () if find_punctuation(self.plan.window) is None else (MATCHED_FIELD,)
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
    """Make a stage ready over input fields of these types; `changes` are read from other stages."""
    refuse_unknown_fields(stage, field_types)
    has_several_inputs = len(stage.inputs) > 1
    restricted_columns = collect_restricted_columns(stage.aggregates)
    field_types = {
        **field_types,
        **{
            restricted.name: pa.bool_() if restricted.field is None else field_types[restricted.field]
            for restricted in restricted_columns
        },
    }
    aggregates = (
        build_accumulator(
            use_restricted_columns(output),
            field_types,
            over_changes=reads_changes,
            has_several_inputs=has_several_inputs and not reads_changes,
        )
        for output in stage.aggregates
    )
    for name in stage.key:
        is_simple = not pa.types.is_nested(field_types[name])
        require(is_simple, "key", f"{name!r} of {stage.name} is {field_types[name]}", SCALAR_KEY_HINT)
    accumulators = (
        aggregates
        if not isinstance(stage.window, StatefulFunction | ChangelogWindows)
        else list_result_columns(stage.window)
    )
    return CompiledStage(
        stage,
        compile_trigger(stage.trigger),
        tuple(accumulators),
        tuple(pa.field(name, field_types[name]) for name in stage.key),
        list_record_fields(stage, field_types) if is_record_ordered(stage.window) else (),
        reads_changes,
        restricted_columns,
    )


def refuse_unknown_fields(stage: Stage, field_types: Mapping[str, pa.DataType]) -> None:
    """Raise DefinitionError for a field that a stage uses and does not find after its steps."""
    for input_ in stage.inputs:
        for yaml_path, name in iter_used_fields(stage, input_):
            if name not in field_types:
                steps = [*stage.steps_of_input(input_), *stage.steps]
                after_step = f" after its {step_kind(steps[-1])} step" if steps else ""
                available = ", ".join(sorted(column for column in field_types if not column.startswith("_")))
                raise DefinitionError(
                    yaml_path,
                    f"{name!r} is no column of {input_}{after_step}, for {stage.name}",
                    f"There are: {available}",
                )


def last_pane_column(part: str) -> str:
    """The state column that remembers what a part held at the last pane."""
    return f"shown_{part}"
