"""Bytes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from penstock.ingestion.contracts.field_types.field_type import JsonSchema, OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.plain_type import PlainType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes


@dataclass(frozen=True, slots=True)
class BytesType(PlainType):
    """Bytes of any length. JSON has them as text in Base64, with padding."""

    keyword = "bytes"
    proto_name = "bytes"
    spark_name = "BINARY"
    avro_name = "bytes"
    json_name = "string"

    @property
    def is_scalar(self) -> bool:
        """Bytes have no text, so they cannot be a key."""
        return False

    @property
    def expectation(self) -> str:
        """The type and how it is written."""
        return "bytes in Base64"

    @property
    def annotation(self) -> Any:
        """Bytes."""
        return bytes

    @property
    def json_ddl(self) -> str:
        """Text."""
        return "STRING"

    def value_sql(self, column: str) -> str:
        """Return SQL that decodes the text."""
        return f"try_to_binary({column}, 'base64')"

    def wire_sql(self, stored: str) -> str:
        """Return SQL that encodes the bytes, in one line."""
        return f"regexp_replace(base64({stored}), '[^A-Za-z0-9+/=]', '')"

    def proof_sql(self, column: str) -> str | None:
        """Return SQL for the pattern of the text."""
        pattern = "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
        return f"{column} RLIKE '{pattern}'"

    @property
    def json_converter(self) -> Callable[[Any], Any] | None:
        """None: the encoder writes Base64."""
        return None

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Scan a length and that many bytes."""
        scan.scan_bytes(rows)

    @property
    def json_schema(self) -> JsonSchema:
        """Text in Base64."""
        return {"type": "string", "contentEncoding": "base64"}

    @classmethod
    def from_json_schema(cls, schema: JsonSchema, _parse: ParseType) -> Self | None:
        """Return the type for its encoding."""
        return cls() if schema.get("contentEncoding") == "base64" else None

    @property
    def odcs_type(self) -> OdcsProperty:
        """Text with the format of Base64."""
        return {"logicalType": "string", "logicalTypeOptions": {"format": "byte"}, "physicalType": "bytes"}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, _parse: ParseType) -> Self | None:
        """Return the type for its formats."""
        return cls() if (keys.get("logicalTypeOptions") or {}).get("format") in ("byte", "binary") else None
