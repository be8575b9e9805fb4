"""A table of latest values: one row for each key and window."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.engine.definition.keyword import keyword
from penstock.engine.plan.sinks import FileMerging, PaneContent
from penstock.engine.sinks.delta_sink import DeltaSink

if TYPE_CHECKING:
    from penstock.engine.tables.sink_target import SinkContext, SinkTarget


@dataclass(frozen=True)
class LatestValues(DeltaSink):
    """A table with the latest value per key and window. Retracted and replaced windows have no row."""

    folder: ClassVar[str] = "latest"
    content: ClassVar[PaneContent] = PaneContent.LATEST
    file_merging: ClassVar[FileMerging] = FileMerging.CLOSED_WINDOWS

    def describe(self) -> str:
        """Describe how it is written."""
        return f"upsert the latest value per key and window into {self.table}"

    def open(self, context: "SinkContext") -> "SinkTarget":
        """Open the table, which is created if it does not exist."""
        from penstock.engine.tables.latest_table import LatestTable, to_latest_schema
        from penstock.engine.tables.table_documentation import document_table

        schema = to_latest_schema(context.pane_schema)
        span_ms = context.file_span_ms
        file_span_us = None if span_ms is None else span_ms * 1000
        return LatestTable(
            context.path,
            schema,
            context.application,
            list(context.window_key),
            file_span_us,
            documentation=document_table(self.folder, context.value_comments),
        )


@keyword("latest", synonyms=("upsert", "update", "merge", "current"))
def latest(table: str) -> LatestValues:
    """Update a table with the latest value of each key and window."""
    return LatestValues(table)
