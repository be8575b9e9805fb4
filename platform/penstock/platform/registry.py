"""The schema registry that the settings name."""

from penstock.infra.secret import read_secret
from penstock.ingestion.registry import Registry, WrittenSchemas, open_registry
from penstock.platform.settings import Settings


def registry_of(settings: Settings) -> Registry:
    """Return the registry; a login that is named is read now, and kept in nothing but what is returned."""
    place = settings.kafka.registry_login
    login = read_secret(place, "The login of the schema registry") if place else ""
    return open_registry(settings.registry, login)


def schemas_of(settings: Settings) -> WrittenSchemas:
    """Return what finds the schemas of records in Avro; the registry is opened when one is looked for."""
    return WrittenSchemas(lambda: registry_of(settings))
