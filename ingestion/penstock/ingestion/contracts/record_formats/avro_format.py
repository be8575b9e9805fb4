"""Avro in the wire format of schema registries."""

from collections.abc import Iterator, Sequence

from penstock.ingestion.contracts.compatibility import find_violations
from penstock.ingestion.contracts.contract import Contract, ContractField
from penstock.ingestion.contracts.record_formats.record_format import (
    ContractProblem,
    FindSchemaById,
    RecordCodec,
    RecordFormat,
    Schema,
)
from penstock.ingestion.contracts.schemas import avro_record_name, parse_schema_fields, to_avro_schema
from penstock.ingestion.errors import ContractError


class AvroFormat(RecordFormat):
    """A value is a zero byte, the id of its schema, and the record, which only that schema can read."""

    keyword = "avro"
    description = "a zero byte, the id of the schema in the registry, the record in Avro"
    keeps_unknown_fields = False
    value_form = "avro"
    stream_parser = "avro"

    def find_problems(self, contract: Contract) -> Iterator[ContractProblem]:
        """Yield the fields whose types Avro does not have."""
        yield from super().find_problems(contract)
        for number, field in enumerate(contract.fields, start=1):
            try:
                field.parsed_type.to_avro_type(field.name)
            except ContractError as error:
                phrase = f"has the field '{field.name}' of type {field.type}: {str(error).rstrip('.')}"
                yield f"fields.{number}.type", phrase

    def to_schema(self, contract: Contract, _earlier_schemas: Sequence[Schema] = ()) -> Schema:
        """Return the Avro schema of a contract."""
        return to_avro_schema(contract)

    def find_readable_fields(
        self, schema: Schema, topic: str, reader: Sequence[ContractField]
    ) -> tuple[ContractField, ...] | None:
        """Return the fields of a schema; None if it is not of this topic, or the reader cannot read it."""
        if schema.get("type") != "record" or schema["name"] != avro_record_name(topic):
            return None
        fields = parse_schema_fields(schema)
        return None if find_violations(fields, reader, "backward") else fields

    def create_codec(self, contract: Contract, schema_id: int, find_schema: FindSchemaById) -> RecordCodec:
        """Return the codec of a contract."""
        # Imported late: every command loads contracts, and few need fastavro.
        from penstock.ingestion.contracts.avro_codec import AvroCodec

        return AvroCodec(contract, schema_id, find_schema)
