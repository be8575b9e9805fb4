"""Storage of tables and files: local folders, and object stores."""

from penstock.engine.storage.object_store import ObjectStoreConfig, ObjectStorePath
from penstock.engine.storage.storage_path import StoragePath, parse_storage_path, resolve_storage_path

__all__ = [
    "ObjectStoreConfig",
    "ObjectStorePath",
    "StoragePath",
    "parse_storage_path",
    "resolve_storage_path",
]
