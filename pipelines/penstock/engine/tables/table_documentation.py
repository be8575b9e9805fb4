"""The description of a Delta table, and the comments of its columns."""

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from deltalake import DeltaTable

from penstock.engine.tables.table_comments import PANE_COMMENTS, RECORD_TABLE_COMMENTS, TABLE_DESCRIPTIONS


@dataclass(frozen=True)
class TableDocumentation:
    """The description of a Delta table, and the comments of its columns by name."""

    description: str
    column_comments: Mapping[str, str]

    def annotate(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with the comments, as Delta stores them."""
        return pa.schema(
            [
                field.with_metadata({"comment": self.column_comments[field.name]})
                if field.name in self.column_comments
                else field
                for field in schema
            ]
        )


def document_table(folder: str, value_comments: Mapping[str, str] | None = None) -> TableDocumentation:
    """Return the documentation of a table of the engine; `value_comments` are those of a result's own columns."""
    comments = RECORD_TABLE_COMMENTS.get(folder, PANE_COMMENTS)
    return TableDocumentation(TABLE_DESCRIPTIONS[folder], {**comments, **(value_comments or {})})


def update_documentation(table: DeltaTable, documentation: TableDocumentation) -> None:
    """Write missing or changed texts into an existing table, one commit of metadata for each.

    Only the owner of a table may call this: a commit of another writer at the same time fails.
    """
    if table.metadata().description != documentation.description:
        table.alter.set_table_description(documentation.description)
    for field in table.schema().fields:
        comment = documentation.column_comments.get(field.name)
        if comment is not None and field.metadata.get("comment") != comment:
            table.alter.set_column_metadata(field.name, {**field.metadata, "comment": comment})
