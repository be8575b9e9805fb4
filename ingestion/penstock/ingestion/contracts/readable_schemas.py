"""Which registered schemas a reader can read. The codecs here and in Spark use the same answer."""

from collections.abc import Sequence

from penstock.ingestion.contracts.compatibility import find_violations
from penstock.ingestion.contracts.contract import ContractField
from penstock.ingestion.contracts.schemas import Schema, avro_record_name, parse_schema_fields


def find_readable_fields(
    schema: Schema, topic: str, reader: Sequence[ContractField]
) -> tuple[ContractField, ...] | None:
    """Return the fields of an Avro schema, or None if it is not of this topic or the reader cannot read it."""
    if schema.get("type") != "record" or schema["name"] != avro_record_name(topic):
        return None
    fields = parse_schema_fields(schema)
    return None if find_violations(fields, reader, "backward") else fields
