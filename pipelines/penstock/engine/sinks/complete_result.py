"""A table with the complete result: one file, which each batch with changes rewrites."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.engine.definition.keyword import keyword
from penstock.engine.plan.sinks import PaneContent
from penstock.engine.sinks.delta_sink import DeltaSink

if TYPE_CHECKING:
    from penstock.engine.tables.sink_target import SinkContext, SinkTarget


@dataclass(frozen=True)
class CompleteTableSink(DeltaSink):
    """A table that is overwritten with the complete result in each batch that changes it. For small results."""

    folder: ClassVar[str] = "complete"
    content: ClassVar[PaneContent] = PaneContent.LATEST

    def describe(self) -> str:
        """Describe how it is written."""
        return f"overwrite {self.table} with the complete result"

    def describe_content(self) -> str:
        """Describe what it holds."""
        return "complete result"

    def open(self, context: "SinkContext") -> "SinkTarget":
        """Open the table, which is created if it does not exist."""
        from penstock.engine.tables.complete_table import CompleteResultTable
        from penstock.engine.tables.latest_table import to_latest_schema
        from penstock.engine.tables.table_documentation import document_table

        schema = to_latest_schema(context.pane_schema)
        documentation = document_table(self.folder, context.value_comments)
        return CompleteResultTable(
            context.path, schema, context.application, list(context.window_key), documentation
        )


@keyword("complete", synonyms=("overwrite", "replace", "full"))
def complete(table: str) -> CompleteTableSink:
    """Overwrite a table with the complete result."""
    return CompleteTableSink(table)
