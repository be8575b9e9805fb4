"""Arrays."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Self

from penstock.ingestion.contracts.contract_modes import ValueForm
from penstock.ingestion.contracts.field_types.field_type import FieldType, JsonSchema, OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.json_cells import parse_json_cell
from penstock.ingestion.contracts.protobuf.proto_shape import ProtoRepeated, ProtoShape
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

_SPARK_ARRAY_PATTERN = re.compile(r"ARRAY\s*<(.+)>", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class ArrayType(FieldType):
    """A list of values of one type. No item is null."""

    item_type: FieldType

    keyword = "array"
    syntax = "array<TYPE>"

    def __str__(self) -> str:
        return f"array<{self.item_type}>"

    @classmethod
    def from_arguments(cls, arguments: str | None, parse: ParseType) -> Self:
        """Return the array of the type in its brackets."""
        if not arguments:
            raise ContractError(
                "Type array needs the type of its items. Write array<TYPE>, as in array<string>."
            )
        return cls(parse(arguments))

    @property
    def is_scalar(self) -> bool:
        """An array has items."""
        return False

    def find_part(self, step: str) -> FieldType | None:
        """Return the type of an item."""
        return self.item_type if step.startswith("[") else None

    @property
    def annotation(self) -> Any:
        """A list."""
        return GenericAlias(list, (self.item_type.annotation,))

    @property
    def fault_finder(self) -> Callable[[Any], str | None] | None:
        """A function that returns the fault of the first invalid item."""
        find_fault = self.item_type.fault_finder
        if find_fault is None:
            return None
        return lambda items: next((fault for item in items if (fault := find_fault(item))), None)

    @property
    def json_converter(self) -> Callable[[Any], Any] | None:
        """A function that converts each item."""
        return _map_items(self.item_type.json_converter)

    @property
    def stored_converter(self) -> Callable[[Any], Any] | None:
        """A function that converts each item."""
        return _map_items(self.item_type.stored_converter)

    def normalize_row_value(self, value: Any) -> Any:
        """Return the array in a cell with JSON."""
        return parse_json_cell(value)

    def is_finite(self, value: Any) -> bool:
        """Return whether all items are finite."""
        return all(map(self.item_type.is_finite, value))

    @property
    def spark_type(self) -> str:
        """An array of the items' stored type."""
        return f"ARRAY<{self.item_type.spark_type}>"

    @classmethod
    def from_spark_type(cls, text: str, parse: ParseType) -> Self | None:
        """Return the array for an array of Spark."""
        match = _SPARK_ARRAY_PATTERN.fullmatch(text)
        return cls(parse(match[1])) if match else None

    @property
    def json_ddl(self) -> str:
        """An array of what `from_json` reads for an item."""
        return f"ARRAY<{self.item_type.json_ddl}>"

    def value_sql(self, column: str) -> str:
        """Return SQL that converts each item."""
        return self._transform_sql(column, self.item_type.value_sql)

    def wire_sql(self, stored: str) -> str:
        """Return SQL that converts each item back."""
        return self._transform_sql(stored, self.item_type.wire_sql)

    def proof_sql(self, column: str) -> str | None:
        """Return SQL for the proof of each item; a null item is not accepted."""
        item = self._item_variable
        item_proof = self.item_type.proof_sql(item)
        condition = f"{item} IS NOT NULL" + (f" AND {item_proof}" if item_proof else "")
        return f"forall({column}, {item} -> {condition})"

    def text_proof_sql(self, column: str, prove_text: Callable[[str], str]) -> str | None:
        """Return SQL for the proof of each item."""
        item = self._item_variable
        item_proof = self.item_type.text_proof_sql(item, prove_text)
        return f"forall({column}, {item} -> {item_proof})" if item_proof else None

    def to_avro_type(self, name: str) -> object:
        """Return an array of the items' type."""
        return {"type": "array", "items": self.item_type.to_avro_type(name)}

    def to_avro_reader_type(self, name: str) -> object:
        """Return an array of what `from_avro` reads for an item."""
        return {"type": "array", "items": self.item_type.to_avro_reader_type(name)}

    @property
    def avro_ddl(self) -> str:
        """An array of what `from_avro` reads for an item."""
        return f"ARRAY<{self.item_type.avro_ddl}>"

    def avro_value_sql(self, column: str) -> str:
        """Return SQL that converts each item."""
        return self._transform_sql(column, self.item_type.avro_value_sql)

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that encodes each item."""
        return _map_items(self.item_type.avro_encoder)

    @property
    def avro_decoder(self) -> Callable[[Any], Any] | None:
        """A function that decodes each item."""
        return _map_items(self.item_type.avro_decoder)

    @classmethod
    def from_avro_type(cls, avro_type: Any, parse: ParseType) -> Self | None:
        """Return the array for an array of Avro."""
        is_array = isinstance(avro_type, dict) and avro_type.get("type") == "array"
        return cls(parse(avro_type["items"])) if is_array else None

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Scan blocks of items."""
        scan.scan_blocks(rows, lambda item_rows: self.item_type.scan_avro(scan, item_rows, None))

    def invalid_text_sql(self, column: str) -> str | None:
        """Return SQL that is true if an item has invalid text."""
        item = self._item_variable
        item_sql = self.item_type.invalid_text_sql(item)
        return f"exists({column}, {item} -> {item_sql})" if item_sql else None

    @property
    def proto_shape(self) -> ProtoShape:
        """A repeated field."""
        return ProtoRepeated(self.item_type.proto_shape)

    @property
    def json_schema(self) -> JsonSchema:
        """A JSON array."""
        return {"type": "array", "items": self.item_type.json_schema}

    @classmethod
    def from_json_schema(cls, schema: JsonSchema, parse: ParseType) -> Self | None:
        """Return the array for a JSON array."""
        return cls(parse(schema["items"])) if "items" in schema else None

    @property
    def odcs_type(self) -> OdcsProperty:
        """An array with its items."""
        return {"logicalType": "array", "physicalType": "array", "items": self.item_type.odcs_type}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, parse: ParseType) -> Self | None:
        """Return the array of the items."""
        return cls(parse(keys["items"])) if keys.get("logicalType") == "array" and "items" in keys else None

    def can_read(self, writer: FieldType, value_form: ValueForm) -> bool:
        """Return whether the items of the writer can be read."""
        return isinstance(writer, ArrayType) and self.item_type.can_read(writer.item_type, value_form)

    @property
    def depth(self) -> int:
        """One more than the depth of the items."""
        return self.item_type.depth + 1

    @property
    def _item_variable(self) -> str:
        """The variable of an item in SQL, different from those inside of this type."""
        return f"x{self.depth}"

    def _transform_sql(self, column: str, item_sql: Callable[[str], str]) -> str:
        item = self._item_variable
        converted_sql = item_sql(item)
        return column if converted_sql == item else f"transform({column}, {item} -> {converted_sql})"


def _map_items(convert: Callable[[Any], Any] | None) -> Callable[[Any], Any] | None:
    return None if convert is None else lambda items: [convert(item) for item in items]
