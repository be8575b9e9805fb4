"""Opens a table of the warehouse by name, for `penstock.open`."""

from datetime import UTC, datetime

from penstock.engine.storage import StoragePath, parse_storage_path
from penstock.platform.settings import load_settings
from penstock.query.errors import VersionError
from penstock.query.table_reader import TableReader
from penstock.query.table_snapshots import open_snapshot
from penstock.query.table_versions import (
    AtBatch,
    AtTime,
    AtVersion,
    VersionSelector,
    parse_version_selector,
)


def open_table(
    name: str,
    *,
    warehouse: str | None = None,
    version: int | None = None,
    at_batch: int | None = None,
    at_time: datetime | str | None = None,
) -> TableReader:
    """Open a table by the name that `penstock sql` knows it by.

    `sensor_minute` has the current rows, `sensor_minute_log` every pane; pipelines/docs/querying.md lists them.
    The warehouse is that of the settings, or the folder or `s3://` address that you pass. `version` is that of
    Delta; `at_batch` and `at_time` select the version after a batch and at a time. Give one of the three at most.

    Raises UnknownTableError and VersionError, with a sentence that says what to do.

    Example:
        penstock.open("sensor_minute").to_polars(columns=["device", "temperature"], where="temperature > 20")
    """
    path = _resolve_warehouse(warehouse)
    return TableReader(path, open_snapshot(path, name, _select_version(version, at_batch, at_time)))


def _resolve_warehouse(address: str | None) -> StoragePath:
    """Return the warehouse at an address, or that of the settings."""
    return load_settings().settings.warehouse_path if address is None else parse_storage_path(str(address))


def _select_version(
    version: int | None, at_batch: int | None, at_time: datetime | str | None
) -> VersionSelector:
    if sum(each is not None for each in (version, at_batch, at_time)) > 1:
        raise VersionError("version, at_batch and at_time select the same thing. Give one of them")
    if version is not None:
        return AtVersion(version)
    if at_batch is not None:
        return AtBatch(at_batch)
    if isinstance(at_time, datetime):
        return AtTime(at_time if at_time.tzinfo else at_time.replace(tzinfo=UTC))
    return None if at_time is None else parse_version_selector(at_time)
