"""A place is a folder or an address: which of the two a text means."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.engine.errors import StorageAddressError
from penstock.engine.storage.object_store import S3_SCHEME, ObjectStoreConfig, ObjectStorePath

StoragePath = Path | ObjectStorePath
S3_SCHEME_ALIASES = ("s3a", "s3n")
"""What others call the same."""


def parse_storage_path(text: str, store_config: ObjectStoreConfig | None = None) -> StoragePath:
    """Where a text says that tables lie: a path, or `s3://bucket/prefix`. StoreError for any other address."""
    if "://" not in text:
        return Path(text)
    scheme, _, rest = text.partition("://")
    if scheme == "file":
        return Path(unquote(urlsplit(text).path))
    if scheme not in (S3_SCHEME, *S3_SCHEME_ALIASES) or not rest.strip("/"):
        raise StorageAddressError(
            text, f"tables lie in a folder or in {S3_SCHEME}://bucket/prefix, and in nothing else"
        )
    return ObjectStorePath(f"{S3_SCHEME}://{rest.rstrip('/')}", store_config or ObjectStoreConfig())


def resolve_storage_path(warehouse: StoragePath, text: str) -> StoragePath:
    """Where a text of a pipeline means: an address or a path of its own, or one below the warehouse.

    An address may be of any kind that Delta's library opens; it is reached as the warehouse is.
    """
    if "://" in text:
        return ObjectStorePath(
            text, warehouse.store_config if isinstance(warehouse, ObjectStorePath) else ObjectStoreConfig()
        )
    return Path(text) if Path(text).is_absolute() else warehouse / text
