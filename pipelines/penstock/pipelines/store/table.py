"""A Delta table whose files Arrow reads by itself.

Left to itself, Delta's library has Arrow's threads read through objects of Python. A process that ends while one of
them still lets go of such an object is aborted, after all its work is done: four of a hundred commands were, on a
busy machine. Arrow's own file systems need no Python, and are there for folders and for the store that we speak to.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from deltalake import DeltaTable

from penstock.pipelines.store.address import SCHEME, Address
from penstock.pipelines.store.place import Place

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset
    from pyarrow.fs import FileSystem


class StoredTable(DeltaTable):
    """The table of a place. TableNotFoundError where there is none."""

    def __init__(self, place: Place, version: int | None = None) -> None:
        super().__init__(uri_of(place), version=version, storage_options=options(place))
        self._place = place

    def to_pyarrow_dataset(self, *told: Any, **named: Any) -> "Dataset":
        """As Delta's library has it, over files that Arrow reads by itself."""
        named["filesystem"] = named.get("filesystem") or _files(self._place)
        return super().to_pyarrow_dataset(*told, **named)


def options(place: Place) -> dict[str, str] | None:
    """What Delta's library is told of a place; nothing for a folder."""
    return place.store.options if isinstance(place, Address) else None


def uri_of(place: Place) -> str | Path:
    """A place as Delta's library names it."""
    return place if isinstance(place, Path) else place.uri


def _files(place: Place) -> "FileSystem | None":
    """What reads the files of a place; None leaves it to Delta's library."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    if isinstance(place, Path):
        return SubTreeFileSystem(str(place.absolute()), LocalFileSystem())
    return SubTreeFileSystem(place.key, place.files) if place.scheme == SCHEME else None
