"""Parses the texts that name a local folder or an address of an object store."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.engine.errors import StorageAddressError
from penstock.engine.storage.object_store import S3_SCHEME, ObjectStoreConfig, ObjectStorePath

StoragePath = Path | ObjectStorePath
S3_SCHEME_ALIASES = ("s3a", "s3n")
"""Other names of the same scheme."""


def parse_storage_path(text: str, store_config: ObjectStoreConfig | None = None) -> StoragePath:
    """Parse a path, `file://` or `s3://bucket/prefix`; raise StorageAddressError for any other address."""
    if "://" not in text:
        return Path(text)
    scheme, _, rest = text.partition("://")
    if scheme == "file":
        return Path(unquote(urlsplit(text).path))
    if scheme not in (S3_SCHEME, *S3_SCHEME_ALIASES) or not rest.strip("/"):
        raise StorageAddressError(
            text, f"tables can be stored only in a folder or in {S3_SCHEME}://bucket/prefix"
        )
    return ObjectStorePath(f"{S3_SCHEME}://{rest.rstrip('/')}", store_config or ObjectStoreConfig())


def resolve_storage_path(warehouse: StoragePath, text: str) -> StoragePath:
    """Resolve a path in a pipeline: an address, an absolute path, or a path relative to the warehouse.

    An address may have any scheme that Delta's library opens; it uses the store configuration of the warehouse.
    """
    if "://" in text:
        return ObjectStorePath(
            text, warehouse.store_config if isinstance(warehouse, ObjectStorePath) else ObjectStoreConfig()
        )
    return Path(text) if Path(text).is_absolute() else warehouse / text
