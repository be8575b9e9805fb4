"""Schema registries: a local folder by default, or a Confluent-compatible server."""

from penstock.core.secret import Secret
from penstock.ingestion.registry.file_registry import FileRegistry
from penstock.ingestion.registry.schema_registry import (
    RegisteredSchema,
    SchemaRegistry,
    check_registration,
    contract_subject,
    register_contract,
)
from penstock.ingestion.registry.writer_schemas import ReadableSchemas, WriterSchemaCache

__all__ = [
    "FileRegistry",
    "ReadableSchemas",
    "RegisteredSchema",
    "SchemaRegistry",
    "WriterSchemaCache",
    "check_registration",
    "contract_subject",
    "open_registry",
    "register_contract",
]


def open_registry(location: str, login: Secret | None = None) -> SchemaRegistry:
    """Return the registry at an `http(s)://` address, with an optional login (`user:password`), or in a folder."""
    from pathlib import Path

    if location.startswith(("http://", "https://")):
        from penstock.ingestion.registry.http_registry import HttpRegistry

        return HttpRegistry(location, login)
    return FileRegistry(Path(location))
