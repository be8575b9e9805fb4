"""A Delta table whose files Arrow reads by itself.

Left to itself, Delta's library has Arrow's threads read through objects of Python. A process that ends while one of
them still lets go of such an object is aborted, after all its work is done: four of a hundred commands were, on a
busy machine. Arrow's own file systems need no Python, and are there for folders and for the store that we speak to.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from penstock.engine.storage.object_store import S3_SCHEME, ObjectStorePath
from penstock.engine.storage.storage_path import StoragePath

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset
    from pyarrow.fs import FileSystem


class ArrowDeltaTable(DeltaTable):
    """The table of a place. TableNotFoundError where there is none."""

    def __init__(self, path: StoragePath, version: int | None = None) -> None:
        super().__init__(storage_uri(path), version=version, storage_options=delta_storage_options(path))
        self._storage_path = path

    def to_pyarrow_dataset(self, *args: Any, **kwargs: Any) -> "Dataset":
        """As Delta's library has it, over files that Arrow reads by itself."""
        kwargs["filesystem"] = kwargs.get("filesystem") or _arrow_filesystem(self._storage_path)
        return super().to_pyarrow_dataset(*args, **kwargs)


def delta_storage_options(path: StoragePath) -> dict[str, str] | None:
    """What Delta's library is told of a place; nothing for a folder."""
    return path.store_config.delta_options if isinstance(path, ObjectStorePath) else None


def storage_uri(path: StoragePath) -> str | Path:
    """A place as Delta's library names it."""
    return path if isinstance(path, Path) else path.uri


def _arrow_filesystem(path: StoragePath) -> "FileSystem | None":
    """What reads the files of a place; None leaves it to Delta's library."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    if isinstance(path, Path):
        return SubTreeFileSystem(str(path.absolute()), LocalFileSystem())
    return SubTreeFileSystem(path.key, path.filesystem) if path.scheme == S3_SCHEME else None
