"""Events of changed rows, in the JSON of Debezium."""

from collections.abc import Iterator, Sequence
from typing import get_args

import msgspec

from penstock.core.names import suggest_name
from penstock.ingestion.contracts.contract import Contract
from penstock.ingestion.contracts.contract_modes import DeletePolicy
from penstock.ingestion.contracts.record_formats.debezium_envelope import (
    ENVELOPE_PARTS,
    EnvelopeReader,
    is_envelope,
    is_envelope_path,
    write_envelope,
)
from penstock.ingestion.contracts.record_formats.json_based_format import JsonBasedCodec, JsonBasedFormat
from penstock.ingestion.contracts.record_formats.record_format import (
    ContractProblem,
    FindSchemaById,
    ReadJson,
    RecordCodec,
    Schema,
)
from penstock.ingestion.contracts.record_rules import RecordRules
from penstock.ingestion.contracts.schemas import to_envelope_schema


class DebeziumFormat(JsonBasedFormat):
    """A value is an envelope with the row before and after a change, with or without a `schema` part.

    A record has the fields of the row, and of the envelope those that the contract names. A record without a value
    follows the event of a deleted row, and is ignored.
    """

    keyword = "debezium"
    description = "an event of Debezium in JSON: the row before and after a change"
    has_writer_schemas = False
    ignores_tombstones = True

    def find_problems(self, contract: Contract) -> Iterator[ContractProblem]:
        """Yield a missing policy of deletes, and what is wrong with the fields of the envelope."""
        if contract.deletes is None:
            words = " or ".join(get_args(DeletePolicy))
            yield "deletes", f"has events of deleted rows, but no policy for them. Set deletes to {words}"
        names = [field.name for field in contract.fields]
        for name, path in contract.envelope:
            if name not in names:
                hint = suggest_name(name, names)
                yield "envelope", f"has '{name}' in the envelope, but no such field.{hint} Declare the field"
            if not is_envelope_path(path):
                hint = suggest_name(path, ENVELOPE_PARTS)
                fix = f"Use one of {', '.join(ENVELOPE_PARTS)}, or source.NAME"
                yield f"envelope.{name}", f"has '{path}' for {name}, which no envelope has.{hint} {fix}"

    def to_schema(self, contract: Contract, _earlier_schemas: Sequence[Schema] = ()) -> Schema:
        """Return the JSON Schema of the envelope."""
        return to_envelope_schema(contract)

    def open_reader(self, rules: RecordRules, _find_schema: FindSchemaById) -> ReadJson:
        """Return the function that makes a record of an envelope."""
        return EnvelopeReader(rules).read_json

    def make_codec(
        self, contract: Contract, _schema_id: int, read_json: ReadJson, _find_schema: FindSchemaById
    ) -> RecordCodec:
        """Return the codec."""
        return _DebeziumCodec(contract, read_json)


class _DebeziumCodec(JsonBasedCodec):
    """Writes envelopes without a `schema` part."""

    def write(self, record: msgspec.Struct) -> bytes:
        """Return the envelope of a record; it is a created row unless the record says otherwise."""
        members = msgspec.json.decode(msgspec.json.encode(record), type=dict[str, msgspec.Raw])
        return write_envelope(members, dict(self.contract.envelope))

    def is_encoded(self, value: bytes) -> bool:
        """Return whether a value is an envelope."""
        return is_envelope(value)
