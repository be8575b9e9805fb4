"""Which registered schemas a reader can read: the same answer for whoever decodes records, here or in Spark."""

from collections.abc import Sequence

from penstock.ingestion.contracts.compatibility import violations
from penstock.ingestion.contracts.model import Field
from penstock.ingestion.contracts.schemas import Schema, fields_in, record_name


def readable_fields(schema: Schema, topic: str, reader: Sequence[Field]) -> tuple[Field, ...] | None:
    """Return the fields of an Avro schema, or None where it is not of the topic or the reader cannot read it."""
    if schema.get("type") != "record" or schema["name"] != record_name(topic):
        return None
    fields = fields_in(schema)
    return None if violations(fields, reader, "backward") else fields
