"""A Confluent-compatible registry over HTTP."""

import json
from typing import Any

from confluent_kafka.schema_registry import Schema as ClientSchema
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError

from penstock.ingestion.contracts.schemas import Schema
from penstock.ingestion.errors import RegistryError
from penstock.ingestion.registry.registry import Registered

_NOT_FOUND = 404


class HttpRegistry:
    """Asks a registry server; the server keeps rules of its own beside ours."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._client = SchemaRegistryClient({"url": url})

    def register(self, subject: str, schema: Schema) -> Registered:
        """Add a version, or return the one that has this schema already."""
        kind = "AVRO" if schema.get("type") == "record" else "JSON"
        text = ClientSchema(json.dumps(schema), kind)
        try:
            self._client.register_schema(subject, text)
            found = self._client.lookup_schema(subject, text)
        except (SchemaRegistryError, OSError) as error:
            raise self._failed(f"to register {subject}", error) from error
        return Registered(subject, int(found.version or 0), int(found.schema_id or 0), schema)

    def versions(self, subject: str) -> tuple[Registered, ...]:
        """Return every version of a subject, oldest first."""
        try:
            found = [
                self._client.get_version(subject, number) for number in self._client.get_versions(subject)
            ]
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                return ()
            raise self._failed(f"to list {subject}", error) from error
        except OSError as error:
            raise self._failed(f"to list {subject}", error) from error
        return tuple(
            Registered(subject, int(one.version or 0), int(one.schema_id or 0), _parsed(one.schema))
            for one in found
        )

    def schema(self, schema_id: int) -> Schema | None:
        """Return the schema of an id, or None where there is none."""
        try:
            return _parsed(self._client.get_schema(schema_id))
        except SchemaRegistryError as error:
            if error.http_status_code == _NOT_FOUND:
                return None
            raise self._failed(f"to get schema {schema_id}", error) from error
        except OSError as error:
            raise self._failed(f"to get schema {schema_id}", error) from error

    def _failed(self, what: str, error: Exception) -> RegistryError:
        return RegistryError(f"the registry at {self._url} was asked {what} and failed: {error}; is it up?")


def _parsed(schema: Any) -> Schema:
    parsed: Schema = json.loads(schema.schema_str)
    return parsed
