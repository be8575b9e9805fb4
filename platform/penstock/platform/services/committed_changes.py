"""Which tables a batch changes, from the journal of its stream."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from penstock.engine.stream_folders import resolve_stream_folder
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.query.table_snapshots import ChangedTables


def find_committed_changes(settings: Settings) -> "ChangedTables":
    """Return a function that returns the tables that a batch changes; None where its outcome is not retained."""

    def find_changes(stream: str, batch_id: int) -> Collection[str] | None:
        from penstock.engine.batch.journal import BatchJournal

        journal = BatchJournal(resolve_stream_folder(settings.home / "streams", stream) / "journal")
        try:
            return journal.read_outcome(batch_id).changes.keys()
        except FileNotFoundError:
            return None

    return find_changes
