"""Universally unique identifiers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self
from uuid import UUID

from penstock.ingestion.contracts.field_types.field_type import OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.stored_text_type import StoredTextType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

_AVRO_TYPE = {"type": "string", "logicalType": "uuid"}


@dataclass(frozen=True, slots=True)
class UuidType(StoredTextType):
    """An identifier of 32 hexadecimal digits, stored as text in lower case with hyphens."""

    keyword = "uuid"
    avro_name = "string"

    @property
    def annotation(self) -> Any:
        """A UUID."""
        return UUID

    def value_sql(self, column: str) -> str:
        """Return SQL for the text in lower case."""
        return f"lower({column})"

    def proof_sql(self, column: str) -> str | None:
        """Return SQL for the pattern of the text; without hyphens it is left to Python."""
        return f"{column} RLIKE '^(?i)[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}}$'"

    def to_avro_type(self, _name: str) -> object:
        """Return the logical type of a string."""
        return _AVRO_TYPE

    def to_avro_reader_type(self, _name: str) -> object:
        """Return the primitive type."""
        return "string"

    def avro_value_sql(self, column: str) -> str:
        """Return SQL for the text in lower case, with hyphens."""
        groups = r"^(.{8})-?(.{4})-?(.{4})-?(.{4})-?(.{12})$"
        return f"lower(regexp_replace({column}, '{groups}', '$1-$2-$3-$4-$5'))"

    @classmethod
    def from_avro_type(cls, avro_type: Any, _parse: ParseType) -> Self | None:
        """Return the type for the logical type."""
        return cls() if avro_type == _AVRO_TYPE else None

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that returns the text."""
        return str

    def invalid_text_sql(self, column: str) -> str | None:
        """Return SQL that is true for other text than 32 digits, with all hyphens or none."""
        return (
            f"NOT {column} RLIKE '^(?i)([0-9a-f]{{32}}|[0-9a-f]{{8}}(-[0-9a-f]{{4}}){{3}}-[0-9a-f]{{12}})$'"
        )

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Leave the record to the decoder, which reads the digits."""
        scan.leave_to_decoder(rows)

    @property
    def odcs_type(self) -> OdcsProperty:
        """Text with the format of a UUID."""
        return {"logicalType": "string", "logicalTypeOptions": {"format": "uuid"}, "physicalType": "uuid"}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, _parse: ParseType) -> Self | None:
        """Return the type for its format."""
        return cls() if (keys.get("logicalTypeOptions") or {}).get("format") == "uuid" else None
