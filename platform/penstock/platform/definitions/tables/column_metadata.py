"""Column schemas and column lineage of topics and tables, for Dagster."""

from collections.abc import Collection

from dagster import TableColumn, TableColumnConstraints, TableColumnDep, TableColumnLineage, TableSchema

from penstock.engine.plan.sinks import Sink
from penstock.engine.plan.stages import Plan, Stage
from penstock.ingestion.contracts import Contract
from penstock.platform.definitions.asset_keys import topic_key
from penstock.platform.lineage.column_origins import TopicField, trace_column_origins
from penstock.platform.lineage.result_columns import describe_result_columns

PERSONAL_TAGS = {"class": "personal"}
"""Tags of a column with personal data."""


def build_topic_schema(contract: Contract) -> TableSchema:
    """Return the fields of a topic's records and the members of structs, from its contract."""
    columns = [
        TableColumn(
            field.name,
            field.type,
            field.doc,
            TableColumnConstraints(nullable=not field.required),
            tags=PERSONAL_TAGS if field.personal else None,
        )
        for contract_field in contract.fields
        for field in contract_field.iter_nested()
    ]
    return TableSchema(columns)


def build_result_schema(
    plan: Plan, stage: Stage, sink: Sink, personal_fields: Collection[TopicField] = ()
) -> TableSchema:
    """Return the columns that a stage writes to a table; `personal_fields` hold personal data."""
    columns = [
        TableColumn(
            column.name, column.type, column.description, tags=PERSONAL_TAGS if column.is_personal else None
        )
        for column in describe_result_columns(plan, stage, sink, personal_fields)
    ]
    return TableSchema(columns)


def build_result_lineage(plan: Plan, stage: Stage, output: str | None = None) -> TableColumnLineage:
    """Return which topic fields each column of a stage is computed from, through all earlier stages.

    For a function with several outputs, `output` names one.
    """
    deps_by_column = {
        name: [TableColumnDep(topic_key(topic), field) for topic, field in sorted(origin.source_fields)]
        for name, origin in trace_column_origins(plan, stage, output).items()
    }
    return TableColumnLineage({name: deps for name, deps in deps_by_column.items() if deps})
