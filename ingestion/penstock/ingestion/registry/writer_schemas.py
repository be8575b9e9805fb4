"""By which schemas the records of a topic were written, for whoever reads the topic for months."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from penstock.ingestion.contracts.contract import ContractField
from penstock.ingestion.contracts.readable_schemas import find_readable_fields
from penstock.ingestion.contracts.schemas import Schema
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry.schema_registry import SchemaRegistry, topic_subject


class ReadableSchemas(NamedTuple):
    """The schemas that a reader can read, by id. With `trouble` the registry did not answer: there may be more."""

    schemas: Mapping[int, Schema]
    registry_error: str = ""


class WriterSchemaCache:
    """Asks the registry each time, for a producer may have registered a schema since.

    One that does not answer is no reason to stop as long as records are of schemas that it told of before; that
    is for the caller to see, by `trouble`. Before the first answer it raises RegistryError.
    """

    def __init__(self, open_registry: Callable[[], SchemaRegistry]) -> None:
        self._open_registry = open_registry
        self._registry: SchemaRegistry | None = None
        self._schemas_by_topic: dict[str, dict[int, Schema]] = {}

    def find_readable(self, topic: str, reader_fields: Sequence[ContractField]) -> ReadableSchemas:
        """Return the schemas of a topic that a reader with these fields can read."""
        registry_error = ""
        try:
            self._schemas_by_topic[topic] = self._fetch_schemas(topic)
        except RegistryError as error:
            if topic not in self._schemas_by_topic:
                raise
            registry_error = str(error)
        topic_schemas = self._schemas_by_topic[topic].items()
        readable_schemas = {
            schema_id: schema
            for schema_id, schema in topic_schemas
            if find_readable_fields(schema, topic, reader_fields) is not None
        }
        return ReadableSchemas(readable_schemas, registry_error)

    def _fetch_schemas(self, topic: str) -> dict[int, Schema]:
        if self._registry is None:
            self._registry = self._open_registry()
        return {version.id: version.schema for version in self._registry.list_versions(topic_subject(topic))}
