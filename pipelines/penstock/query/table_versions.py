"""The version of a table as of a batch or a time."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from penstock.engine.storage import StoragePath
from penstock.engine.tables.table_owner import read_table_owner
from penstock.engine.tables.table_writers import list_current_writers
from penstock.query.errors import VersionError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class AtBatch:
    """Tables as they were after a batch of the stream that writes them."""

    batch_id: int


@dataclass(frozen=True)
class AtTime:
    """Tables as they were at a time."""

    time: datetime


@dataclass(frozen=True)
class AtVersion:
    """A version of a Delta table."""

    version: int


VersionSelector: TypeAlias = AtBatch | AtTime | AtVersion | None
"""Which version of a table to read; None for the newest."""


def parse_version_selector(text: str) -> AtBatch | AtTime:
    """Parse the number of a batch, or a time in ISO 8601; a time without an offset is UTC."""
    if text.isdecimal():
        return AtBatch(int(text))
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise VersionError(
            f"{text!r} is neither the number of a batch nor a time. Write 1234 or 2026-01-31T12:00"
        ) from None
    return AtTime(time if time.tzinfo else time.replace(tzinfo=UTC))


def find_writer(table: DeltaTable, path: StoragePath) -> str | None:
    """Return the stream that writes a table; None if it has none or several, as a quarantine may have."""
    if (owner := read_table_owner(table)) is not None:
        return owner.stream
    writers = list(list_current_writers(path))
    return writers[0] if len(writers) == 1 else None


def read_batch(table: DeltaTable, stream: str) -> int:
    """Return the newest batch of a stream in a loaded version; -1 before the first."""
    version = table.transaction_version(stream)
    return -1 if version is None else version


def load_version(table: DeltaTable, name: str, stream: str | None, selector: VersionSelector) -> None:
    """Load the selected version into an open table. Raises VersionError if it is not, or no longer, there."""
    match selector:
        case AtBatch(batch_id):
            _load_batch(table, name, stream, batch_id)
        case AtTime(time):
            _load_time(table, name, time)
        case AtVersion(version):
            try:
                table.load_as_version(version)
            except DeltaError:
                raise VersionError(f"table {name} has no version {version}, or no longer") from None


def _load_time(table: DeltaTable, name: str, time: datetime) -> None:
    """Load the newest version that was committed by a time.

    Delta's library goes by the times of files. These are later than the commit, and those of a copy much later.
    """
    newest = table.version()
    table.load_as_version(time)
    oldest_version = table.version()
    table.load_as_version(newest)  # `history` counts versions back from the one that is loaded
    commits = table.history(newest - oldest_version + 1)
    time_ms = (time - EPOCH) // timedelta(milliseconds=1)
    version = next((commit["version"] for commit in commits if commit["timestamp"] <= time_ms), None)
    if version is None:
        oldest = datetime.fromtimestamp(commits[-1]["timestamp"] / 1000, UTC)
        raise VersionError(
            f"table {name} cannot be read as of {time.isoformat()}: its oldest version is of {oldest.isoformat()}"
        )
    table.load_as_version(version)


def _load_batch(table: DeltaTable, name: str, stream: str | None, batch_id: int) -> None:
    """Load the newest version without later batches, by binary search: batch ids grow with versions."""
    if stream is None:
        raise VersionError(
            f"table {name} has no single writer, so a batch does not identify a version. Give a time"
        )
    newest = table.version()
    if (newest_batch := read_batch(table, stream)) <= batch_id:
        return
    oldest, too_new = 0, newest
    while too_new - oldest > 1:
        middle = (oldest + too_new) // 2
        if _is_after(table, middle, stream, batch_id):
            too_new = middle
        else:
            oldest = middle
    try:
        table.load_as_version(oldest)
    except DeltaError:
        raise VersionError(
            f"table {name} can no longer be read as of batch {batch_id}: maintenance removed that version. "
            f"Its newest batch is {newest_batch}"
        ) from None


def _is_after(table: DeltaTable, version: int, stream: str, batch_id: int) -> bool:
    """Whether a version has a later batch; one that was removed counts as earlier."""
    try:
        table.load_as_version(version)
    except DeltaError:
        return False
    return read_batch(table, stream) > batch_id
