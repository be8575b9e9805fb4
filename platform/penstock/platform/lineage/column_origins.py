"""Column lineage: the topic fields that a result column is computed from, and those whose values it shows.

Lineage follows stages, joins, `select`, and simple SQL (`sql_projection.py`). Anything else counts as computed from
every column that the stage reads, and as showing all of them, so personal data is never missed. A function over
DataFrames is assumed to keep the meaning of a column that keeps its name.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING

from penstock.engine.aggregates.aggregate import Aggregate
from penstock.engine.plan.changelog import ChangelogWindows
from penstock.engine.plan.columns import WINDOW_BOUND_COLUMNS, stage_value_columns
from penstock.engine.plan.sources import PlanSource, TopicOrigin
from penstock.engine.plan.stages import Plan, Stage
from penstock.engine.plan.stateful_function import StatefulFunction
from penstock.engine.plan.steps import FilterStep, LookupStep, RowFunctionStep, SelectStep, SqlStep, Step

if TYPE_CHECKING:
    from penstock.platform.lineage.sql_projection import SelectItem

TopicField = tuple[str, str]
"""A topic and one of its fields."""


@dataclass(frozen=True)
class ColumnOrigin:
    """The fields that a column is computed from, and those whose values it shows or may show."""

    source_fields: frozenset[TopicField] = frozenset()
    visible_fields: frozenset[TopicField] = frozenset()

    def __or__(self, other: "ColumnOrigin") -> "ColumnOrigin":
        return ColumnOrigin(
            self.source_fields | other.source_fields, self.visible_fields | other.visible_fields
        )

    @property
    def hidden(self) -> "ColumnOrigin":
        """The origin without visible fields, for a count or a mean."""
        return ColumnOrigin(self.source_fields)


def merge_origins(origins: Iterable[ColumnOrigin]) -> ColumnOrigin:
    """Return the origin of a column that is computed from all of these."""
    return reduce(ColumnOrigin.__or__, origins, ColumnOrigin())


@dataclass(frozen=True)
class OriginsByColumn:
    """The origins of known columns by name, and the origin of any other column."""

    by_name: Mapping[str, ColumnOrigin]
    unnamed_origin: ColumnOrigin = field(default_factory=ColumnOrigin)

    def find_origin(self, name: str) -> ColumnOrigin:
        """Return the origin of a column."""
        return self.by_name.get(name, self.unnamed_origin)

    @property
    def merged_origin(self) -> ColumnOrigin:
        """The origin of a column that may be computed from any of the columns."""
        return merge_origins([*self.by_name.values(), self.unnamed_origin])


def trace_column_origins(plan: Plan, stage: Stage, output: str | None = None) -> dict[str, ColumnOrigin]:
    """Return the origins of a stage's key and value columns, in their order; a count has no origin.

    `output` names a side output of a stateful function. The columns that every pane has are not included.
    """
    input_columns = {
        name: _apply_steps(stage.steps, _apply_steps(stage.steps_of_input(name), _trace_input(plan, name)))
        for name in stage.inputs
    }
    merged_origin = merge_origins(columns.merged_origin for columns in input_columns.values())
    key_origins = {
        name: merge_origins(columns.find_origin(name) for columns in input_columns.values())
        for name in stage.key
    }
    return key_origins | _trace_values(stage, input_columns, merged_origin, output)


def _trace_input(plan: Plan, name: str) -> OriginsByColumn:
    source = next((candidate for candidate in plan.sources if candidate.name == name), None)
    if source is not None:
        return OriginsByColumn({column.name: _field_origin(source, column.name) for column in source.columns})
    upstream = next(candidate for candidate in plan.stages if candidate.name == name)
    return OriginsByColumn(
        trace_column_origins(plan, upstream) | dict.fromkeys(WINDOW_BOUND_COLUMNS, ColumnOrigin())
    )


def _field_origin(source: PlanSource, name: str) -> ColumnOrigin:
    if not isinstance(source.origin, TopicOrigin):
        return ColumnOrigin()
    topic_fields = frozenset([(source.origin.topic, name)])
    return ColumnOrigin(topic_fields, topic_fields)


def _trace_values(
    stage: Stage,
    input_columns: Mapping[str, OriginsByColumn],
    merged_origin: ColumnOrigin,
    output: str | None,
) -> dict[str, ColumnOrigin]:
    match stage.window:
        case StatefulFunction() as function:
            return dict.fromkeys((column.name for column in function.output_columns(output)), merged_origin)
        case ChangelogWindows():
            return {
                name: merge_origins(columns.find_origin(name) for columns in input_columns.values())
                for name in stage_value_columns(stage)
            }
    if stage.join is not None:
        return {
            join_column.name: input_columns[join_column.input].find_origin(join_column.field)
            for join_column in stage.join.columns
        }
    return {output.name: _aggregate_origin(output.aggregate, input_columns) for output in stage.aggregates}


def _aggregate_origin(aggregate: Aggregate, input_columns: Mapping[str, OriginsByColumn]) -> ColumnOrigin:
    columns_of_inputs = [
        columns for name, columns in input_columns.items() if aggregate.restricted_input in (None, name)
    ]
    source_origin, visible_origin = (
        merge_origins(columns.find_origin(name) for columns in columns_of_inputs for name in names)
        for names in (aggregate.used_fields, aggregate.visible_fields)
    )
    return source_origin.hidden | visible_origin


def _apply_steps(steps: Iterable[Step], columns: OriginsByColumn) -> OriginsByColumn:
    return reduce(_apply_step, steps, columns)


def _apply_step(columns: OriginsByColumn, step: Step) -> OriginsByColumn:
    match step:
        case FilterStep():
            return columns
        case SelectStep(pairs):
            return OriginsByColumn({new: columns.find_origin(old) for new, old in pairs})
        case RowFunctionStep(returns=returns):
            return OriginsByColumn({column.name: columns.merged_origin for column in returns})
        case LookupStep(on=lookup_keys, columns=added_columns):
            lookup_origin = merge_origins(columns.find_origin(name) for name in lookup_keys)
            return OriginsByColumn(
                {**columns.by_name, **{added_column.name: lookup_origin for added_column in added_columns}},
                columns.unnamed_origin,
            )
        case SqlStep(text):
            return _apply_sql(columns, text)
        case _:
            return OriginsByColumn(columns.by_name, columns.merged_origin)


def _apply_sql(columns: OriginsByColumn, sql: str) -> OriginsByColumn:
    from penstock.platform.lineage.sql_projection import parse_select

    select_items = parse_select(sql)
    if select_items is None:
        return OriginsByColumn(columns.by_name, columns.merged_origin)
    return _apply_selection(columns, select_items)


def _apply_selection(columns: OriginsByColumn, select_items: "Iterable[SelectItem]") -> OriginsByColumn:
    """Return the columns of a SELECT. Column names are case-insensitive, as in Spark."""
    origins_by_lower_name = {name.lower(): origin for name, origin in columns.by_name.items()}
    origins_by_alias: dict[str, ColumnOrigin] = {}
    selected_origins: dict[str, ColumnOrigin] = {}
    unnamed_origin = ColumnOrigin()
    for item in select_items:
        if item.name is None:
            selected_origins |= columns.by_name
            unnamed_origin = columns.unnamed_origin
        else:
            known_origins = [
                origins_by_lower_name[name]
                for name in item.referenced_names | item.possible_names
                if name in origins_by_lower_name
            ]
            # A name that is no column may be the alias of an earlier item.
            alias_origins = [
                origins_by_alias.get(name, ColumnOrigin()) | columns.unnamed_origin
                for name in item.referenced_names - set(origins_by_lower_name)
            ]
            item_origin = merge_origins([*known_origins, *alias_origins])
            selected_origins[item.name] = origins_by_alias[item.name.lower()] = item_origin
    return OriginsByColumn(selected_origins, unnamed_origin)
