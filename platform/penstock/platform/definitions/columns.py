"""Columns of topics and tables, and which come from which, as Dagster shows them."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from dagster import TableColumn, TableColumnConstraints, TableColumnDep, TableColumnLineage, TableSchema

from penstock.ingestion.contracts import Contract
from penstock.pipelines.plan import (
    Aggregate,
    LatestValues,
    OfInput,
    PaneLog,
    Plan,
    Remembering,
    Sink,
    Stage,
    aggregate_fields,
)
from penstock.pipelines.tables.latest import SHOWN_ONCE
from penstock.platform.definitions.names import topic_key
from penstock.platform.origins import origins

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
    output = sink.output if isinstance(sink, PaneLog) else None
    types, from_ = read_types(plan, stage), origins(plan, stage, output)
    told = {name: PERSONAL if origin.shown & frozenset(personal) else None for name, origin in from_.items()}
    key = [
        TableColumn(name, types.get(name, "string"), "part of the key", tags=told[name]) for name in stage.key
    ]
    unsaid = SHOWN_ONCE if isinstance(sink, LatestValues) else ()
    pane = [TableColumn(name, type_, text) for name, type_, text in PANE if name not in unsaid]
    outputs = [TableColumn(name, kind, said, tags=told[name]) for name, kind, said in _said(stage, types, output)]
    return TableSchema([*key, *outputs, *pane])


def _said(stage: Stage, types: Mapping[str, str], output: str | None) -> Iterator[tuple[str, str, str]]:
    """Yield name and type of each value of a stage, and what made it."""
    if isinstance(stage.window, Remembering):
        for column in stage.window.columns_to(output):
            yield column.name, column.type.lower(), f"told by {stage.window.function.name}"
    else:
        for value in values(stage):
            yield value.name, value.type_of(types), value.said


def read_types(plan: Plan, stage: Stage) -> dict[str, str]:
    """The types of the fields that a stage reads, by the contracts of its topics or from the stages before it."""
    types = {c.name: c.type.lower() for s in plan.sources if s.name in stage.inputs for c in s.columns}
    for each in plan.feeding(stage):
        below = read_types(plan, each)
        types |= {name: below.get(name, "string") for name in each.key}
        types |= {value.name: value.type_of(below) for value in values(each)}
    return types


def result_lineage(plan: Plan, stage: Stage) -> TableColumnLineage:
    """Which fields of which topics a stage's columns are made from, through the stages before it."""
    found = {
        name: [TableColumnDep(topic_key(topic), field) for topic, field in sorted(origin.made)]
        for name, origin in origins(plan, stage).items()
    }
    return TableColumnLineage({name: deps for name, deps in found.items() if deps})


@dataclass(frozen=True)
class Value:
    """A column that a stage shows beside its key, what made it, and from which fields."""

    name: str
    said: str
    made_from: tuple[str, ...]
    of: Aggregate | None = None

    def type_of(self, types: Mapping[str, str]) -> str:
        """Its type, where those of the fields are known; a joined column has the type of its field."""
        return types.get(self.made_from[0], "string") if self.of is None else _output_type(self.of, types)


def values(stage: Stage) -> list[Value]:
    """The columns that a stage computes, or takes from the two sides of its join."""
    if stage.join is not None:
        taken = stage.join.columns
        return [Value(c.name, f"{c.input}.{c.field}", (c.field,)) for c in taken]
    return [
        Value(each.name, formula(each.of), aggregate_fields(each.of), each.of) for each in stage.aggregates
    ]


def formula(aggregate: Aggregate) -> str:
    """An aggregate as a person writes it: mean(temperature)."""
    if isinstance(aggregate, OfInput):
        return f"of({aggregate.input}, {formula(aggregate.of)})"
    return f"{type(aggregate).__name__.lower()}({', '.join(aggregate_fields(aggregate))})"


def _output_type(aggregate: Aggregate, types: Mapping[str, str]) -> str:
    if isinstance(aggregate, OfInput):
        return _output_type(aggregate.of, types)
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
