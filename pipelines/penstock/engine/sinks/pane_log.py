"""A log of panes: every pane is a row."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from penstock.engine.definition.argument_checks import require_name
from penstock.engine.definition.keyword import keyword
from penstock.engine.definition.stored_fields import OMITTED_AT_DEFAULT
from penstock.engine.plan.sinks import FileMerging
from penstock.engine.sinks.delta_sink import DeltaSink

if TYPE_CHECKING:
    from penstock.engine.tables.sink_target import SinkContext, SinkTarget


@dataclass(frozen=True)
class PaneLog(DeltaSink):
    """A table to which every pane is appended; with `output`, the rows of one side output."""

    folder: ClassVar[str] = "panes"
    file_merging: ClassVar[FileMerging] = FileMerging.ALL

    output: str | None = field(default=None, metadata=OMITTED_AT_DEFAULT)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output is not None:
            require_name(self.output, "write.output")

    def describe(self) -> str:
        """Describe how it is written."""
        return f"append {self.describe_content()} to {self.table}"

    def describe_content(self) -> str:
        """Describe what it holds."""
        return super().describe_content() if self.output is None else f"rows of output {self.output}"

    def open(self, context: "SinkContext") -> "SinkTarget":
        """Open the table, which is created if it does not exist."""
        from penstock.engine.tables.log_table import LogTable
        from penstock.engine.tables.table_documentation import document_table

        documentation = document_table(self.folder, context.value_comments)
        return LogTable(context.path, context.pane_schema, context.application, documentation)


@keyword("log", synonyms=("append", "changelog", "history"))
def log(table: str, output: str | None = None) -> PaneLog:
    """Append every pane to a table, or the rows of a side output of a stateful function."""
    return PaneLog(table, output)
