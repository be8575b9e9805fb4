"""What an open sink can do, and what it needs to know to be opened."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from penstock.engine.storage import StoragePath
from penstock.engine.tables.table_change import DataFile, TableChange

EMPTY_SCHEMA = pa.schema([])


class SinkTarget(Protocol):
    """The open target of a sink. A batch is written first, and committed after the journal names its change."""

    def write(self, rows: pa.Table, batch_id: int, clock: int) -> TableChange:
        """Write the rows of a batch so that no reader sees them, and return the change that shows them."""

    def discard(self, files: Iterable[DataFile]) -> None:
        """Remove what was written for a batch that failed before the journal named it."""

    def commit(self, batch_id: int, change: TableChange, clock: int) -> bool:
        """Show a batch, once; return False when it was shown before."""

    def refresh_ahead(self) -> None:
        """Prepare the next commit, in any thread, after all commits of a batch."""


@dataclass(frozen=True)
class SinkContext:
    """What a sink needs to know of its stage and its stream."""

    path: StoragePath
    """Where it writes: its own path in the warehouse of the stream or of a run."""
    application: str
    """The stream, which identifies the writer of a batch together with the batch id."""
    key: Sequence[str]
    """The columns of the key."""
    window_key: Sequence[str] = ()
    """The columns that identify a window beside its bounds: the key, and the number of a window if it has one."""
    pane_schema: pa.Schema = EMPTY_SCHEMA
    """The columns of its panes. Empty where a sink is opened only to finish a commit."""
    value_comments: Mapping[str, str] = field(default_factory=dict)
    """What the columns of the key and the values are, by name."""
    file_span_ms: int | None = None
    """The interval of windows that a file should cover; None for no limit."""
    client_config: Mapping[str, str] | None = None
    """The settings of Kafka clients; None where nothing outside of the warehouse may change."""

    @property
    def is_live(self) -> bool:
        """Whether a live stream writes. A bounded run or a replay must write below `path` only."""
        return self.client_config is not None
