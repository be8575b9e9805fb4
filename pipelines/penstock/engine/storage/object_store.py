"""An address in an object store, with the operations of a path that tables need.

Credentials come from where AWS's own tools look: environment variables, profiles, and roles of machines and
containers. An address holds no credentials, so it may be printed, compared and sent to other processes.
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
    """How to reach an object store; by default AWS's environment variables decide."""

    endpoint: str = ""
    """The address of a store that is not Amazon's, such as MinIO."""
    region: str = ""

    @property
    def delta_options(self) -> dict[str, str]:
        """The options under the names of Delta's library."""
        plain_http = {"allow_http": "true"} if self.endpoint.startswith("http://") else {}
        settings = {"aws_endpoint": self.endpoint, "aws_region": self.region, **plain_http}
        return {name: value for name, value in settings.items() if value}


@dataclass(frozen=True)
class ObjectStorePath:
    """`s3://bucket/prefix`, a file or everything below a prefix.

    Files are written atomically, by one request or by the one that completes a multipart upload. Other schemes can
    only be opened as tables, if Delta's library supports them.
    """

    uri: str
    store_config: ObjectStoreConfig = field(default_factory=ObjectStoreConfig)

    def __truediv__(self, below: str | PurePath) -> "ObjectStorePath":
        return ObjectStorePath(f"{self.uri.rstrip('/')}/{PurePath(below).as_posix()}", self.store_config)

    def __str__(self) -> str:
        return self.uri

    def __fspath__(self) -> str:
        raise StorageAddressError(self.uri, "it is an address of an object store; a local folder is required")

    @property
    def name(self) -> str:
        """The last part of the address."""
        return self.uri.rstrip("/").rpartition("/")[2]

    @property
    def scheme(self) -> str:
        """The scheme of the address, such as `s3`."""
        return self.uri.partition("://")[0]

    def exists(self) -> bool:
        """Whether there is a file at this address, or anything below it."""
        return str(self._get_file_info().type.name) != "NotFound"

    def size(self) -> int:
        """Return the size of the file in bytes; raise FileNotFoundError when there is none."""
        info = self._get_file_info()
        if not info.is_file:
            raise FileNotFoundError(self.uri)
        return int(info.size)

    def read_bytes(self) -> bytes:
        """Return the content of the file; raise FileNotFoundError when there is none."""
        with self.translate_errors(), self.filesystem.open_input_file(self.key) as file:
            return bytes(file.read())

    def read_text(self, encoding: str) -> str:
        """Return the text of the file."""
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content: bytes) -> None:
        """Write the file atomically."""
        with self.translate_errors(), self.filesystem.open_output_stream(self.key) as file:
            file.write(content)

    def unlink(self, *, missing_ok: bool = False) -> None:
        """Remove the file."""
        try:
            with self.translate_errors():
                self.filesystem.delete_file(self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def iterdir(self) -> "Iterator[ObjectStorePath]":
        """Yield the addresses directly below; raise StorageUnavailableError when the bucket does not exist."""
        yield from (self / info.base_name for info in self._list_below())

    def list_files(self) -> "Iterator[tuple[ObjectStorePath, int]]":
        """Yield the files directly below, each with its modification time in milliseconds."""
        for info in self._list_below():
            if info.is_file:
                yield self / info.base_name, int(info.mtime_ns // 1_000_000)

    def measure_below(self) -> int:
        """Return the bytes of all files below this address."""
        from pyarrow.fs import FileSelector

        with self.translate_errors():
            selector = FileSelector(self.key, allow_not_found=True, recursive=True)
            return sum(int(info.size) for info in self.filesystem.get_file_info(selector) if info.is_file)

    @property
    def bucket(self) -> str:
        """The bucket of the address."""
        return self.key.partition("/")[0]

    @property
    def key(self) -> str:
        """Bucket and key, as Arrow's S3 file system expects them."""
        return self.uri.partition("://")[2].strip("/")

    @property
    def filesystem(self) -> "S3FileSystem":
        """The store's file system; raises StorageAddressError for a scheme other than S3."""
        if self.scheme != S3_SCHEME:
            raise StorageAddressError(self.uri, f"files can be read and written only in {S3_SCHEME}://")
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
        """Raise StorageUnavailableError, with one line of text, for an OSError other than a missing file."""
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
    # With delayed open, a small file is one request instead of the three of a multipart upload.
    return S3FileSystem(**{name: value for name, value in options.items() if value}, allow_delayed_open=True)
