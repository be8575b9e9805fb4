"""The schema registry that the settings name."""

from penstock.core.secret import read_secret
from penstock.ingestion.registry import SchemaRegistry, WriterSchemaCache, open_registry
from penstock.platform.settings import Settings


def open_schema_registry(settings: Settings) -> SchemaRegistry:
    """Return the registry; a login that is named is read now, and kept in nothing but what is returned."""
    login_reference = settings.kafka.registry_login
    login = read_secret(login_reference, "The login of the schema registry") if login_reference else ""
    return open_registry(settings.registry_location, login)


def open_writer_schemas(settings: Settings) -> WriterSchemaCache:
    """Return what finds the schemas of records in Avro; the registry is opened when one is looked for."""
    return WriterSchemaCache(lambda: open_schema_registry(settings))
