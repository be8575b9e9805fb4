"""Caches the schemas with which the records of a topic were written, for readers that run for a long time."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from penstock.ingestion.contracts.contract import ContractField
from penstock.ingestion.contracts.record_formats.format_discovery import find_record_format
from penstock.ingestion.contracts.record_formats.record_format import Schema
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry.schema_registry import SchemaRegistry, topic_subject


class ReadableSchemas(NamedTuple):
    """The schemas that a reader can read, by id. A `registry_error` means that the list may be incomplete."""

    schemas: Mapping[int, Schema]
    registry_error: str = ""


class WriterSchemaCache:
    """Fetches the schemas of a topic on each call, because a producer may have registered a new one.

    If the registry fails, the cache returns the last known schemas and the error. The caller decides whether
    records with an unknown schema are a problem. Before the first successful fetch it raises RegistryError.
    """

    def __init__(self, open_registry: Callable[[], SchemaRegistry]) -> None:
        self._open_registry = open_registry
        self._registry: SchemaRegistry | None = None
        self._schemas_by_topic: dict[str, dict[int, Schema]] = {}

    def find_readable(
        self, topic: str, reader_fields: Sequence[ContractField], encoding: str
    ) -> ReadableSchemas:
        """Return the schemas of a topic that a reader of records in this encoding with these fields can read."""
        registry_error = ""
        try:
            self._schemas_by_topic[topic] = self._fetch_schemas(topic)
        except RegistryError as error:
            if topic not in self._schemas_by_topic:
                raise
            registry_error = str(error)
        topic_schemas = self._schemas_by_topic[topic].items()
        record_format = find_record_format(encoding)
        readable_schemas = {
            schema_id: schema
            for schema_id, schema in topic_schemas
            if record_format.find_readable_fields(schema, topic, reader_fields) is not None
        }
        return ReadableSchemas(readable_schemas, registry_error)

    def _fetch_schemas(self, topic: str) -> dict[int, Schema]:
        if self._registry is None:
            self._registry = self._open_registry()
        return {version.id: version.schema for version in self._registry.list_versions(topic_subject(topic))}
