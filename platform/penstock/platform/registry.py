"""The schema registry that the settings name."""

from penstock.infra.secret import read_secret
from penstock.ingestion.registry import Registry, open_registry
from penstock.platform.settings import Settings


def registry_of(settings: Settings) -> Registry:
    """Return the registry; a login that is named is read now, and kept in nothing but what is returned."""
    place = settings.kafka.registry_login
    login = read_secret(place, "The login of the schema registry") if place else ""
    return open_registry(settings.registry, login)
