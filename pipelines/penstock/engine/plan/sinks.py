"""The base classes of sinks: everything that the engine, explain, the audit and maintenance ask a sink."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from penstock.engine.definition.argument_checks import require_storage_name

if TYPE_CHECKING:  # a definition needs no Arrow
    import pyarrow as pa

    from penstock.engine.storage import StoragePath
    from penstock.engine.tables.sink_target import SinkContext, SinkTarget


class PaneContent(Enum):
    """Which panes of a stage the rows of a sink are. The value says so in words."""

    ALL = "every pane"
    """All panes, retractions included. A row is never replaced."""
    FINAL = "final panes"
    """The final pane of each window. A row is never replaced."""
    LATEST = "latest value per key and window"
    """The newest pane of each key and window. Retracted and replaced windows have no row."""


class ReplayRule(Enum):
    """What a replay of the stream does with a sink."""

    REPLACE = "replace"
    """It replaces the content by that of the replay, with `Sink.replace_content`."""
    KEEP = "keep"
    """It leaves the content as it is."""
    REFUSE = "refuse"
    """A stream with this sink cannot be replayed."""


class FileMerging(Enum):
    """Which files of a Delta table maintenance may merge beside the running stream."""

    ALL = "all"
    CLOSED_WINDOWS = "closed windows"
    """Only files of windows that get no more panes, because the stream replaces the other files."""
    NONE = "none"


class Sink(ABC):
    """Where a stage writes its panes. Every sink applies a batch exactly once, by application and batch id.

    A kind is a frozen dataclass in `penstock.engine.sinks`; the docstring of that package has the recipe.
    """

    folder: ClassVar[str]
    """The folder of its `path`."""
    content: ClassVar[PaneContent] = PaneContent.ALL
    takes_changes: ClassVar[bool] = False
    """Whether it takes panes as changes, with the watermark that readers of a changelog need."""
    is_delta_table: ClassVar[bool] = False
    """Whether its content is a Delta table at its path, which the audit and maintenance can open."""
    file_merging: ClassVar[FileMerging] = FileMerging.NONE
    replay_rule: ClassVar[ReplayRule] = ReplayRule.REFUSE

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the table or topic."""

    @property
    def path(self) -> str:
        """Its path below the warehouse, which also names its changes in the journal."""
        return f"{self.folder}/{self.name}"

    @property
    def published_topic(self) -> str | None:
        """The Kafka topic to which it publishes."""
        return None

    @property
    def output(self) -> str | None:
        """The side output of a stateful function whose rows it takes; None for the main output."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """Describe how it is written, as in `append every pane to sensors`."""

    def describe_content(self) -> str:
        """Describe what it holds."""
        return self.content.value

    @abstractmethod
    def open(self, context: "SinkContext") -> "SinkTarget | None":
        """Open its target for the batches of a stream.

        Return None to write nothing, as a sink outside of the warehouse must unless `context.is_live`.
        """

    def select_panes(self, panes: "pa.Table") -> "pa.Table":
        """Return the panes of a batch that it takes."""
        return panes

    def read_rows(self, path: "StoragePath", application: str, upto: int) -> "pa.Table | None":
        """Return its rows after batch `upto`, for the audit; None if they are not known.

        The audit asks only sinks that are no Delta tables. It reports a sink without an answer as not comparable.
        """
        del path, application, upto
        return None

    def replace_content(
        self, path: "StoragePath", replayed: "StoragePath", application: str, batch_id: int, clock: int
    ) -> None:
        """Replace its content at `path` by that at `replayed`, once for this batch id; for ReplayRule.REPLACE."""
        raise NotImplementedError(f"{type(self).__name__} does not define replace_content")


@dataclass(frozen=True)
class TableSink(Sink):
    """A sink that `write` declares, with the name of its table. Here it need not be a Delta table."""

    folder: ClassVar[str] = "external"

    table: str

    def __post_init__(self) -> None:
        require_storage_name(self.table, "write.table")

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.table
