"""Maps: values of one type under any keys of text."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Self

from penstock.ingestion.contracts.contract_modes import ValueForm
from penstock.ingestion.contracts.field_types.field_type import FieldType, JsonSchema, OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.json_cells import parse_json_cell
from penstock.ingestion.contracts.field_types.type_text import split_outside_brackets
from penstock.ingestion.contracts.protobuf.proto_shape import ProtoMap, ProtoShape
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

_SPARK_MAP_PATTERN = re.compile(r"MAP\s*<\s*STRING\s*,(.+)>", re.IGNORECASE | re.DOTALL)
Convert = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class MapType(FieldType):
    """Values of one type by keys of text. No value is null."""

    value_type: FieldType

    keyword = "map"
    syntax = "map<string, TYPE>"

    def __str__(self) -> str:
        return f"map<string, {self.value_type}>"

    @classmethod
    def from_arguments(cls, arguments: str | None, parse: ParseType) -> Self:
        """Return the map with values of the type in its brackets."""
        key_text, *value_text = split_outside_brackets(arguments or "", ",", limit=1)
        if key_text != "string" or not value_text:
            raise ContractError(
                f"Type map<{arguments or ''}> is not valid. Write map<string, TYPE>: the keys are always text."
            )
        return cls(parse(value_text[0]))

    @property
    def is_scalar(self) -> bool:
        """A map has values."""
        return False

    @property
    def depth(self) -> int:
        """One more than the depth of the values."""
        return self.value_type.depth + 1

    @property
    def annotation(self) -> Any:
        """A dictionary."""
        return GenericAlias(dict, (str, self.value_type.annotation))

    @property
    def fault_finder(self) -> Callable[[Any], str | None] | None:
        """A function that returns the fault of the first invalid value, with its key."""
        find_fault = self.value_type.fault_finder
        if find_fault is None:
            return None
        return lambda values: next(
            (f"{key}: {fault}" for key, value in values.items() if (fault := find_fault(value))), None
        )

    @property
    def json_converter(self) -> Callable[[Any], Any] | None:
        """A function that converts each value."""
        return _map_values(self.value_type.json_converter)

    @property
    def stored_converter(self) -> Callable[[Any], Any] | None:
        """A function that converts each value."""
        return _map_values(self.value_type.stored_converter)

    def find_part(self, step: str) -> FieldType | None:
        """Return the type of a value."""
        return self.value_type if step.startswith("[") else None

    def normalize_row_value(self, value: Any) -> Any:
        """Return the object in a cell with JSON."""
        return parse_json_cell(value)

    def is_finite(self, value: Any) -> bool:
        """Return whether all values are finite."""
        return all(map(self.value_type.is_finite, value.values()))

    @property
    def spark_type(self) -> str:
        """A map of the stored values."""
        return f"MAP<STRING, {self.value_type.spark_type}>"

    @classmethod
    def from_spark_type(cls, text: str, parse: ParseType) -> Self | None:
        """Return the map for one of Spark with keys of text."""
        match = _SPARK_MAP_PATTERN.fullmatch(text)
        return cls(parse(match[1].strip())) if match else None

    @property
    def json_ddl(self) -> str:
        """A map of what `from_json` reads for a value."""
        return f"MAP<STRING, {self.value_type.json_ddl}>"

    def value_sql(self, column: str) -> str:
        """Return SQL that converts each value."""
        return self._transform_sql(column, self.value_type.value_sql)

    def wire_sql(self, stored: str) -> str:
        """Return SQL that converts each value back."""
        return self._transform_sql(stored, self.value_type.wire_sql)

    def proof_sql(self, column: str) -> str | None:
        """Return SQL for the proof of each value; a null value or a repeated key is left to Python."""
        item = f"x{self.depth}"
        value_proof = self.value_type.proof_sql(item)
        condition = f"{item} IS NOT NULL" + (f" AND {value_proof}" if value_proof else "")
        has_unique_keys = f"size(array_distinct(map_keys({column}))) = size(map_keys({column}))"
        return f"(forall(map_values({column}), {item} -> {condition}) AND {has_unique_keys})"

    def text_proof_sql(self, column: str, prove_text: Callable[[str], str]) -> str | None:
        """Return SQL for the proof of each value, and that no key occurs twice, of which `from_json` keeps both."""
        item = f"x{self.depth}"
        value_proof = self.value_type.text_proof_sql(item, prove_text)
        is_distinct = f"size({column}) = size(array_distinct(map_keys({column})))"
        return (
            f"{is_distinct} AND forall(map_values({column}), {item} -> {value_proof})"
            if value_proof
            else is_distinct
        )

    def to_avro_type(self, name: str) -> object:
        """Return a map of the values' type."""
        return {"type": "map", "values": self.value_type.to_avro_type(name)}

    def to_avro_reader_type(self, name: str) -> object:
        """Return a map of what `from_avro` reads for a value."""
        return {"type": "map", "values": self.value_type.to_avro_reader_type(name)}

    @property
    def avro_ddl(self) -> str:
        """A map of what `from_avro` reads for a value."""
        return f"MAP<STRING, {self.value_type.avro_ddl}>"

    def avro_value_sql(self, column: str) -> str:
        """Return SQL that converts each value."""
        return self._transform_sql(column, self.value_type.avro_value_sql)

    @classmethod
    def from_avro_type(cls, avro_type: Any, parse: ParseType) -> Self | None:
        """Return the map for a map of Avro."""
        is_map = isinstance(avro_type, Mapping) and avro_type.get("type") == "map"
        return cls(parse(avro_type["values"])) if is_map else None

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that encodes each value."""
        return _map_values(self.value_type.avro_encoder)

    @property
    def avro_decoder(self) -> Callable[[Any], Any] | None:
        """A function that decodes each value."""
        return _map_values(self.value_type.avro_decoder)

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Scan blocks of keys and values."""

        def scan_entry(entry_rows: "RowIndexes") -> None:
            scan.scan_text(entry_rows, None)
            self.value_type.scan_avro(scan, entry_rows, None)

        scan.scan_blocks(rows, scan_entry)

    def invalid_text_sql(self, column: str) -> str | None:
        """Return SQL that is true if a key or a value has invalid text."""
        item = f"x{self.depth}"
        value_sql = self.value_type.invalid_text_sql(item)
        invalid_key = f"exists(map_keys({column}), {item} -> NOT is_valid_utf8({item}))"
        if value_sql is None:
            return invalid_key
        return f"({invalid_key} OR exists(map_values({column}), {item} -> {value_sql}))"

    @property
    def proto_shape(self) -> ProtoShape:
        """A map."""
        return ProtoMap(self.value_type.proto_shape)

    @property
    def json_schema(self) -> JsonSchema:
        """A JSON object with any keys."""
        return {"type": "object", "additionalProperties": self.value_type.json_schema}

    @classmethod
    def from_json_schema(cls, schema: JsonSchema, parse: ParseType) -> Self | None:
        """Return the map for an object with a schema of its values."""
        values = schema.get("additionalProperties")
        is_map = (
            schema.get("type") == "object" and isinstance(values, Mapping) and not schema.get("properties")
        )
        return cls(parse(values)) if is_map else None

    @property
    def odcs_type(self) -> OdcsProperty:
        """A map with its keys and values."""
        parts = {"key": {"logicalType": "string"}, "value": self.value_type.odcs_type}
        return {"logicalType": "map", "physicalType": "map", "map": parts}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, parse: ParseType) -> Self | None:
        """Return the map for one with keys of text."""
        parts = keys.get("map") or {}
        is_map = keys.get("logicalType") == "map" and "value" in parts
        if not is_map or (parts.get("key") or {}).get("logicalType") != "string":
            return None
        return cls(parse(parts["value"]))

    def can_read(self, writer: FieldType, value_form: ValueForm) -> bool:
        """Return whether the values of the writer can be read."""
        return isinstance(writer, MapType) and self.value_type.can_read(writer.value_type, value_form)

    def _transform_sql(self, column: str, value_sql: Callable[[str], str]) -> str:
        key, item = f"k{self.depth}", f"x{self.depth}"
        converted_sql = value_sql(item)
        return (
            column
            if converted_sql == item
            else f"transform_values({column}, ({key}, {item}) -> {converted_sql})"
        )


def _map_values(convert: Convert | None) -> Convert | None:
    return None if convert is None else lambda values: {key: convert(value) for key, value in values.items()}
