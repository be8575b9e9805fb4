"""Descriptions of result columns: type, computation, origin, and whether the column is personal."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from penstock.engine.aggregates import AggregateContext
from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.definition.sql_arrow_types import find_arrow_type
from penstock.engine.errors import DefinitionError
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.columns import WINDOW_BOUND_COLUMNS
from penstock.engine.plan.sinks import PaneContent, Sink
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import LookupStep, RowFunctionStep, SelectStep, Step
from penstock.engine.tables.latest_table import PANE_ONLY_COLUMNS
from penstock.engine.tables.table_comments import KEY_COMMENT, PANE_COMMENTS
from penstock.engine.windows.order_window import OrderWindow
from penstock.platform.lineage.column_origins import ColumnOrigin, TopicField, trace_column_origins
from penstock.platform.lineage.sql_types import to_sql_type

PANE_COLUMN_TYPES = {
    "window_start": "timestamp",
    "window_end": "timestamp",
    "pane": "int",
    "timing": "string",
    "on_time_index": "int",
    "final": "boolean",
    "kind": "string",
    "records": "bigint",
    "batch_id": "bigint",
    "batch_clock": "timestamp",
    "watermark": "timestamp",
}
"""The columns of every pane, after its key and its values."""

REPLACED_COLUMN_TYPES = {"replaced_by_start": "timestamp", "replaced_by_end": "timestamp"}
"""Additional columns of session panes, if merged sessions are not retracted."""
WINDOW_NUMBER_COLUMN_TYPES = {"window_number": "bigint"}
"""Additional column of panes of record-ordered windows."""


@dataclass(frozen=True)
class ResultColumn:
    """A column of a table. `is_personal` says whether it may show personal data."""

    name: str
    type: str
    description: str
    origin: ColumnOrigin
    is_personal: bool


def describe_result_columns(
    plan: Plan, stage: Stage, sink: Sink, personal_fields: Collection[TopicField] = ()
) -> list[ResultColumn]:
    """Return the columns that a stage writes to a table: the key, the values, and the pane columns.

    `personal_fields` names the personal fields of topics; a column that shows one of them is personal.
    """
    output = sink.output
    types, column_origins, personal_set = (
        resolve_field_types(plan, stage),
        trace_column_origins(plan, stage, output),
        frozenset(personal_fields),
    )
    keys_and_values = [
        *((name, types.get(name, "string"), KEY_COMMENT) for name in stage.key),
        *_describe_values(stage, types, output),
    ]
    value_columns = [
        ResultColumn(
            name,
            column_type,
            description,
            column_origins[name],
            _is_personal(column_origins[name], personal_set),
        )
        for name, column_type, description in keys_and_values
    ]
    omitted = PANE_ONLY_COLUMNS if sink.content is PaneContent.LATEST else ()
    pane_column_types = PANE_COLUMN_TYPES | _extra_pane_columns(stage)
    return [
        *value_columns,
        *(
            ResultColumn(name, column_type, PANE_COMMENTS[name], ColumnOrigin(), is_personal=False)
            for name, column_type in pane_column_types.items()
            if name not in omitted
        ),
    ]


def _is_personal(origin: ColumnOrigin, personal_fields: Collection[TopicField]) -> bool:
    """Return whether a column shows a personal field or a member of a personal struct."""
    return any((topic, path.partition(".")[0]) in personal_fields for topic, path in origin.visible_fields)


def _extra_pane_columns(stage: Stage) -> dict[str, str]:
    """Return the additional pane columns of the stage's window type, and their types."""
    if stage.window.merge_gap is not None and stage.accumulation != "retracting":
        return REPLACED_COLUMN_TYPES
    return WINDOW_NUMBER_COLUMN_TYPES if isinstance(stage.window, OrderWindow) else {}


def _describe_values(
    stage: Stage, types: Mapping[str, str], output: str | None
) -> Iterator[tuple[str, str, str]]:
    """Yield name, type and description of each value of a stage."""
    match stage.window:
        case StatefulFunction() as function:
            description = f"output of {function.function.name}"
            yield from ((c.name, c.type.lower(), description) for c in function.output_columns(output))
        case ChangelogWindows(columns=columns):
            yield from ((c.name, c.type.lower(), "as published") for c in columns)
        case _:
            yield from (
                (value.name, value.resolve_type(types), value.description)
                for value in list_stage_values(stage)
            )


def resolve_field_types(plan: Plan, stage: Stage) -> dict[str, str]:
    """Return the types of a stage's fields after its steps, from contracts or from earlier stages.

    A step that cannot be analyzed keeps the type of each column name.
    """
    field_types: dict[str, str] = {}
    for name in stage.inputs:
        types = _input_types(plan, name)
        for step in (*stage.steps_of_input(name), *stage.steps):
            types = _types_after_step(types, step)
        field_types |= types
    return field_types


def _input_types(plan: Plan, name: str) -> dict[str, str]:
    """Return the column types of an input: a source or an earlier stage."""
    source = next((each for each in plan.sources if each.name == name), None)
    if source is not None:
        return {column.name: column.type.lower() for column in source.columns}
    upstream = next(each for each in plan.stages if each.name == name)
    upstream_types = resolve_field_types(plan, upstream)
    keys = {each: upstream_types.get(each, "string") for each in upstream.key}
    value_types = {
        each: value_type for each, value_type, _ in _describe_values(upstream, upstream_types, None)
    }
    return keys | value_types | dict.fromkeys(WINDOW_BOUND_COLUMNS, "timestamp")


def _types_after_step(types: dict[str, str], step: Step) -> dict[str, str]:
    match step:
        case SelectStep(pairs):
            return {new: types[old] for new, old in pairs if old in types}
        case RowFunctionStep(returns=columns):
            return {column.name: column.type.lower() for column in columns}
        case LookupStep(columns=columns):
            return types | {column.name: column.type.lower() for column in columns}
        case _:
            return types


@dataclass(frozen=True)
class StageValue:
    """A value column of a stage: how it is computed, and from which fields."""

    name: str
    description: str
    source_fields: tuple[str, ...]
    aggregate: Aggregate | None = None

    def resolve_type(self, types: Mapping[str, str]) -> str:
        """Return its type for these field types; a joined column has the type of its field."""
        return (
            types.get(self.source_fields[0], "string")
            if self.aggregate is None
            else _aggregate_type(self.aggregate, types)
        )


def list_stage_values(stage: Stage) -> list[StageValue]:
    """List the value columns of a stage: its aggregates, or the columns of its join."""
    if stage.join is not None:
        join_columns = stage.join.columns
        return [
            StageValue(join_column.name, f"{join_column.input}.{join_column.field}", (join_column.field,))
            for join_column in join_columns
        ]
    return [
        StageValue(
            output.name,
            output.aggregate.describe_call(),
            output.aggregate.used_fields,
            output.aggregate,
        )
        for output in stage.aggregates
    ]


def _aggregate_type(aggregate: Aggregate, types: Mapping[str, str]) -> str:
    """Return the type that the engine gives the aggregate.

    A field without a known type counts as a number where a text is not allowed.
    """
    fields = aggregate.used_fields
    known_types = {name: find_arrow_type(types[name]) for name in fields if name in types}
    for unknown_type in (pa.string(), pa.float64()):
        field_types = {name: known_types.get(name) or unknown_type for name in fields}
        with suppress(DefinitionError):
            return to_sql_type(aggregate.result_type(AggregateContext("value", field_types)))
    return types.get(fields[0], "string") if fields else "string"
