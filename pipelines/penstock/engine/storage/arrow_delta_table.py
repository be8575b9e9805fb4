"""A Delta table whose files Arrow reads through its own file systems.

By default, Arrow's threads read Delta's files through Python objects. A process that exits while a thread releases
such an object is aborted after its work is done; on a busy machine this hit 4 % of commands. Arrow's own file
systems need no Python objects. They exist for local folders and for S3.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from penstock.engine.storage.log_checksums import verify_log
from penstock.engine.storage.object_store import S3_SCHEME, ObjectStorePath
from penstock.engine.storage.storage_path import StoragePath

if TYPE_CHECKING:
    from pyarrow import Table
    from pyarrow.dataset import Dataset
    from pyarrow.fs import FileSystem


class ArrowDeltaTable(DeltaTable):
    """The Delta table at a path. Raises TableNotFoundError when there is none."""

    def __init__(self, path: StoragePath, version: int | None = None) -> None:
        super().__init__(storage_uri(path), version=version, storage_options=delta_storage_options(path))
        self._storage_path = path

    def to_pyarrow_dataset(self, *args: Any, **kwargs: Any) -> "Dataset":
        """Return Delta's dataset over Arrow's own file system. Raises OSError if log or footers are damaged."""
        self.verify()
        kwargs["filesystem"] = kwargs.get("filesystem") or _arrow_filesystem(self._storage_path)
        return super().to_pyarrow_dataset(*args, **kwargs)

    def verify(self) -> None:
        """Verify the log and the footers of all files of a table in a folder. Raises OSError if one is damaged.

        The entries that hold the schema have no checksum, but the schema must have the columns of the files.
        """
        if not isinstance(self._storage_path, Path):
            return
        from penstock.engine.storage.parquet_footers import read_checked_columns

        verify_log(self._storage_path, self.version())
        columns = {field.name for field in self.schema().fields}
        for path in self.file_uris():
            if unknown := read_checked_columns(Path(path)) - columns:
                raise OSError(f"{self._storage_path}: its schema lacks the column {min(unknown)} of {path}")

    def to_pyarrow_table(self, *args: Any, **kwargs: Any) -> "Table":
        """Return the rows, and verify all checksums. Raises OSError if a file is damaged."""
        from pyarrow.dataset import ParquetFragmentScanOptions

        if args or kwargs.keys() - {"columns"}:
            return super().to_pyarrow_table(*args, **kwargs)
        options = ParquetFragmentScanOptions(pre_buffer=True, page_checksum_verification=True)
        return self.to_pyarrow_dataset().to_table(
            columns=kwargs.get("columns"), fragment_scan_options=options
        )


def delta_storage_options(path: StoragePath) -> dict[str, str] | None:
    """Return the options of Delta's library for a path; None for a folder."""
    return path.store_config.delta_options if isinstance(path, ObjectStorePath) else None


def storage_uri(path: StoragePath) -> str | Path:
    """Return a path as Delta's library expects it."""
    return path if isinstance(path, Path) else path.uri


def _arrow_filesystem(path: StoragePath) -> "FileSystem | None":
    """Return the file system for a path; None uses that of Delta's library."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    if isinstance(path, Path):
        return SubTreeFileSystem(str(path.absolute()), LocalFileSystem())
    return SubTreeFileSystem(path.key, path.filesystem) if path.scheme == S3_SCHEME else None
