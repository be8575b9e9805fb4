"""Columns of topics and tables, and which come from which, as Dagster shows them."""

from collections.abc import Collection, Iterator, Mapping

from dagster import TableColumn, TableColumnConstraints, TableColumnDep, TableColumnLineage, TableSchema

from penstock.ingestion.contracts import Contract
from penstock.pipelines.plan import (
    Aggregate,
    Collect,
    Custom,
    First,
    Last,
    LatestValues,
    Max,
    Min,
    Plan,
    Sink,
    Source,
    Stage,
    Topic,
    TopN,
    aggregate_fields,
)
from penstock.pipelines.tables.latest import SHOWN_ONCE
from penstock.platform.definitions.names import topic_key

PERSONAL = {"class": "personal"}
"""Tags a column that tells of a person."""

PANE = (
    ("window_start", "timestamp", "the window's first moment"),
    ("window_end", "timestamp", "the first moment after the window"),
    ("pane", "int", "0, 1, 2 … for each key and window"),
    ("timing", "string", "early, on_time or late"),
    ("on_time_index", "int", "-1 for early panes, then 0, 1 …"),
    ("final", "boolean", "whether nothing comes for the window after it"),
    ("kind", "string", "insert, or retract for values that are taken back"),
    ("records", "bigint", "how many records are in it"),
    ("batch_id", "bigint", "the batch that wrote it"),
    ("batch_clock", "timestamp", "the batch's clock"),
    ("watermark", "timestamp", "the watermark after the batch"),
)
"""The columns of every pane, after its key and its values."""


def topic_columns(contract: Contract) -> TableSchema:
    """The fields of a topic's records, by its contract."""
    columns = [
        TableColumn(
            field.name,
            field.type,
            field.doc,
            TableColumnConstraints(nullable=not field.required),
            tags=PERSONAL if field.personal else None,
        )
        for field in contract.fields
    ]
    return TableSchema(columns)


def result_columns(
    plan: Plan, stage: Stage, sink: Sink, personal: Collection[tuple[str, str]] = ()
) -> TableSchema:
    """What a stage writes to a table: the key, its outputs, and what is told of every pane.

    `personal` names fields, each with its topic, that tell of a person; a column that shows one does, too.
    """
    types = {column.name: column.type.lower() for source in plan.sources for column in source.columns}
    telling = {
        field for source in _topic_sources(plan, stage) for topic, field in personal if topic == source.name
    }

    def tags(*fields: str) -> Mapping[str, str] | None:
        return PERSONAL if telling & set(fields) else None

    key = [
        TableColumn(name, types.get(name, "string"), "part of the key", tags=tags(name)) for name in stage.key
    ]
    unsaid = SHOWN_ONCE if isinstance(sink, LatestValues) else ()
    pane = [TableColumn(name, type_, text) for name, type_, text in PANE if name not in unsaid]
    outputs = [
        TableColumn(
            output.name,
            _output_type(output.of, types),
            formula(output.of),
            tags=tags(*shown_fields(output.of)),
        )
        for output in stage.aggregates
    ]
    return TableSchema([*key, *outputs, *pane])


def result_lineage(plan: Plan, stage: Stage) -> TableColumnLineage:
    """Which fields of which topics a stage's columns are made from.

    By name: a field that a step of the pipeline makes itself has no line.
    """
    fields: dict[str, tuple[str, ...]] = {name: (name,) for name in stage.key}
    fields |= {output.name: aggregate_fields(output.of) for output in stage.aggregates}
    found = {name: list(_deps(plan, stage, wanted)) for name, wanted in fields.items()}
    return TableColumnLineage({name: deps for name, deps in found.items() if deps})


def shown_fields(aggregate: Aggregate) -> tuple[str, ...]:
    """The fields whose values an aggregate shows as they are; a count or a mean shows none of them."""
    match aggregate:
        case Min(field) | Max(field) | First(field) | Last(field) | Collect(field):
            return (field,)
        case TopN(field=field, by=by):
            return (field,) if by is None else (field, by)
        case Custom(fields):
            return fields
        case _:
            return ()


def formula(aggregate: Aggregate) -> str:
    """An aggregate as a person writes it: mean(temperature)."""
    return f"{type(aggregate).__name__.lower()}({', '.join(aggregate_fields(aggregate))})"


def _deps(plan: Plan, stage: Stage, fields: tuple[str, ...]) -> Iterator[TableColumnDep]:
    for source in _topic_sources(plan, stage):
        assert isinstance(source.origin, Topic)
        names = {column.name for column in source.columns}
        for field in fields:
            if field in names:
                yield TableColumnDep(topic_key(source.origin.topic), field)


def _topic_sources(plan: Plan, stage: Stage) -> Iterator[Source]:
    for source in plan.sources:
        if source.name in stage.inputs and isinstance(source.origin, Topic):
            yield source


def _output_type(aggregate: Aggregate, types: dict[str, str]) -> str:
    match type(aggregate).__name__:
        case "Count" | "Distinct":
            return "bigint"
        case "Mean":
            return "double"
        case "Quantiles":
            return "array<double>"
        case "TopN" | "Collect":
            return f"array<{types.get(aggregate_fields(aggregate)[0], 'string')}>"
        case "Custom":
            return "string"
        case _:
            return types.get(aggregate_fields(aggregate)[0], "string")
