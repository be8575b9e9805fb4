"""An address in an object store, with as much of a path's ways as tables need.

Who may read and write there is found where AWS's own tools look: variables, profiles, roles of machines and
containers. No name or key is kept here, so an address may be shown, compared and sent to other processes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePath
from typing import TYPE_CHECKING

from penstock.engine.errors import StorageAddressError, StorageUnavailableError

if TYPE_CHECKING:
    from pyarrow.fs import FileInfo, S3FileSystem

S3_SCHEME = "s3"


@dataclass(frozen=True)
class ObjectStoreConfig:
    """How an object store is reached; without words as AWS's own variables say."""

    endpoint: str = ""
    """The address of a store that is not Amazon's, such as one of a test."""
    region: str = ""

    @property
    def delta_options(self) -> dict[str, str]:
        """The same as Delta's library reads it."""
        plain_http = {"allow_http": "true"} if self.endpoint.startswith("http://") else {}
        settings = {"aws_endpoint": self.endpoint, "aws_region": self.region, **plain_http}
        return {name: value for name, value in settings.items() if value}


@dataclass(frozen=True)
class ObjectStorePath:
    """`s3://bucket/prefix`, and what lies below it.

    A file is put there whole or not at all, by one request or by one that ends a longer upload. Other schemes can
    be opened as tables, where Delta's library knows them; nothing else can be done with them.
    """

    uri: str
    store_config: ObjectStoreConfig = field(default_factory=ObjectStoreConfig)

    def __truediv__(self, below: str | PurePath) -> "ObjectStorePath":
        return ObjectStorePath(f"{self.uri.rstrip('/')}/{PurePath(below).as_posix()}", self.store_config)

    def __str__(self) -> str:
        return self.uri

    def __fspath__(self) -> str:
        raise StorageAddressError(self.uri, "it is an address of an object store, and a folder is wanted")

    @property
    def name(self) -> str:
        """Its last part."""
        return self.uri.rstrip("/").rpartition("/")[2]

    @property
    def scheme(self) -> str:
        """What it begins with."""
        return self.uri.partition("://")[0]

    def exists(self) -> bool:
        """Whether there is a file, or anything below it."""
        return str(self._get_file_info().type.name) != "NotFound"

    def size(self) -> int:
        """The bytes of a file. FileNotFoundError where there is none."""
        info = self._get_file_info()
        if not info.is_file:
            raise FileNotFoundError(self.uri)
        return int(info.size)

    def read_bytes(self) -> bytes:
        """A file, whole. FileNotFoundError where there is none."""
        with self.translate_errors(), self.filesystem.open_input_file(self.key) as file:
            return bytes(file.read())

    def read_text(self, encoding: str) -> str:
        """A file of text, whole."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content: bytes) -> None:
        """Put a file there, whole or not at all."""
        with self.translate_errors(), self.filesystem.open_output_stream(self.key) as file:
            file.write(content)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove a file."""
        try:
            with self.translate_errors():
                self.filesystem.delete_file(self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def iterdir(self) -> "Iterator[ObjectStorePath]":
        """What lies directly below; nothing where there is nothing, but a bucket there must be."""
        yield from (self / info.base_name for info in self._list_below())

    def list_files(self) -> "Iterator[tuple[ObjectStorePath, int]]":
        """The files directly below, each with when it was written, in milliseconds."""
        for info in self._list_below():
            if info.is_file:
                yield self / info.base_name, int(info.mtime_ns // 1_000_000)

    @property
    def bucket(self) -> str:
        """The bucket that it is in."""
        return self.key.partition("/")[0]

    @property
    def key(self) -> str:
        """Bucket and name, as the store's own library has them."""
        return self.uri.partition("://")[2].strip("/")

    @property
    def filesystem(self) -> "S3FileSystem":
        """The store's files. StoreError for a store that is not spoken to."""
        if self.scheme != S3_SCHEME:
            raise StorageAddressError(self.uri, f"files can be read and written in {S3_SCHEME}:// only")
        return _open_filesystem(self.store_config)

    def _list_below(self) -> "list[FileInfo]":
        from pyarrow.fs import FileSelector

        with self.translate_errors():
            entries = self.filesystem.get_file_info(FileSelector(self.key, allow_not_found=True))
            if not entries and self.filesystem.get_file_info(self.bucket).type.name == "NotFound":
                raise StorageUnavailableError(self.uri, "there is no such bucket")
        return list(entries)

    def _get_file_info(self) -> "FileInfo":
        with self.translate_errors():
            return self.filesystem.get_file_info(self.key)

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Tell in a sentence what a store's libraries say in many; that a file is not there is no fault."""
        try:
            yield
        except FileNotFoundError:
            raise
        except OSError as problem:
            raise StorageUnavailableError(self.uri, str(problem).splitlines()[0]) from problem


@cache
def _open_filesystem(store_config: ObjectStoreConfig) -> "S3FileSystem":
    from pyarrow.fs import S3FileSystem

    options = {"endpoint_override": store_config.endpoint, "region": store_config.region}
    # Delayed: a small file is one request, not the three of a long upload.
    return S3FileSystem(**{name: value for name, value in options.items() if value}, allow_delayed_open=True)
