"""Columns of topics and tables, and which come from which, as Dagster shows them."""

from collections.abc import Collection

from dagster import TableColumn, TableColumnConstraints, TableColumnDep, TableColumnLineage, TableSchema

from penstock.ingestion.contracts import Contract
from penstock.pipelines.plan import Plan, Sink, Stage
from penstock.platform.columns import described
from penstock.platform.definitions.names import topic_key
from penstock.platform.origins import Field, origins

PERSONAL = {"class": "personal"}
"""Tags a column that tells of a person."""


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


def result_columns(plan: Plan, stage: Stage, sink: Sink, personal: Collection[Field] = ()) -> TableSchema:
    """What a stage writes to a table; `personal` are fields of topics that tell of a person."""
    columns = [
        TableColumn(each.name, each.type, each.said, tags=PERSONAL if each.personal else None)
        for each in described(plan, stage, sink, personal)
    ]
    return TableSchema(columns)


def result_lineage(plan: Plan, stage: Stage, output: str | None = None) -> TableColumnLineage:
    """Which fields of which topics a stage's columns are made from, through the stages before it.

    Of a function that tells rows to several places, `output` names one.
    """
    found = {
        name: [TableColumnDep(topic_key(topic), field) for topic, field in sorted(origin.made)]
        for name, origin in origins(plan, stage, output).items()
    }
    return TableColumnLineage({name: deps for name, deps in found.items() if deps})
