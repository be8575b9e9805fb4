"""The schema registry of the settings."""

from penstock.core.secret import read_secret
from penstock.ingestion.registry import SchemaRegistry, WriterSchemaCache, open_registry
from penstock.platform.settings import Settings


def open_schema_registry(settings: Settings) -> SchemaRegistry:
    """Return the registry client. A configured login is read now and kept only in the client."""
    login_reference = settings.kafka.registry_login
    login = read_secret(login_reference, "The login of the schema registry") if login_reference else None
    return open_registry(settings.registry_location, login)


def open_writer_schemas(settings: Settings) -> WriterSchemaCache:
    """Return the cache of writer schemas for Avro records; it opens the registry at the first lookup."""
    return WriterSchemaCache(lambda: open_schema_registry(settings))
