"""A log of final panes: one row for each window that has closed."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from penstock.engine.definition.keyword import keyword
from penstock.engine.plan.sinks import FileMerging, PaneContent
from penstock.engine.sinks.delta_sink import DeltaSink

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.engine.tables.sink_target import SinkContext, SinkTarget


@dataclass(frozen=True)
class FinalPanes(DeltaSink):
    """A table to which only the final pane of each window is appended."""

    folder: ClassVar[str] = "final"
    content: ClassVar[PaneContent] = PaneContent.FINAL
    file_merging: ClassVar[FileMerging] = FileMerging.ALL

    def describe(self) -> str:
        """Describe how it is written."""
        return f"append final panes to {self.table}"

    def open(self, context: "SinkContext") -> "SinkTarget":
        """Open the table, which is created if it does not exist."""
        from penstock.engine.tables.log_table import LogTable
        from penstock.engine.tables.table_documentation import document_table

        documentation = document_table(self.folder, context.value_comments)
        return LogTable(context.path, context.pane_schema, context.application, documentation)

    def select_panes(self, panes: "pa.Table") -> "pa.Table":
        """Return the final panes. One that was never written needs no retraction."""
        import pyarrow.compute as pc

        is_insert = pc.equal(panes.column("kind"), "insert")
        return panes.filter(pc.and_(panes.column("final"), is_insert))


@keyword("final", synonyms=("closed", "finalonly"))
def final(table: str) -> FinalPanes:
    """Append the final pane of each window to a table."""
    return FinalPanes(table)
