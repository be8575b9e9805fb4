"""Which registered schemas a reader can read: the same answer for whoever decodes records, here or in Spark."""

from collections.abc import Sequence

from penstock.ingestion.contracts.compatibility import find_violations
from penstock.ingestion.contracts.contract import ContractField
from penstock.ingestion.contracts.schemas import Schema, avro_record_name, parse_schema_fields


def find_readable_fields(
    schema: Schema, topic: str, reader: Sequence[ContractField]
) -> tuple[ContractField, ...] | None:
    """Return the fields of an Avro schema, or None where it is not of the topic or the reader cannot read it."""
    if schema.get("type") != "record" or schema["name"] != avro_record_name(topic):
        return None
    fields = parse_schema_fields(schema)
    return None if find_violations(fields, reader, "backward") else fields
