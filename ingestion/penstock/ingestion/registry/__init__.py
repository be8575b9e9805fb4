"""Schema registries: a folder by default, a Confluent-compatible server where there is one."""

from penstock.ingestion.registry.file_registry import FileRegistry
from penstock.ingestion.registry.registry import (
    Registered,
    Registry,
    check_contract,
    register_contract,
    subject_of,
)
from penstock.ingestion.registry.written import Written, WrittenSchemas

__all__ = [
    "FileRegistry",
    "Registered",
    "Registry",
    "Written",
    "WrittenSchemas",
    "check_contract",
    "open_registry",
    "register_contract",
    "subject_of",
]


def open_registry(place: str, login: str = "") -> Registry:
    """Return the registry at an `http(s)://` address, which may want a login (`user:password`), or in a folder."""
    from pathlib import Path

    if place.startswith(("http://", "https://")):
        from penstock.ingestion.registry.http_registry import HttpRegistry

        return HttpRegistry(place, login)
    return FileRegistry(Path(place))
