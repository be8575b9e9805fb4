"""Text."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from penstock.ingestion.contracts.field_types.field_type import OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.plain_type import PlainType, Promotions

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes


@dataclass(frozen=True, slots=True)
class StringType(PlainType):
    """Text of any length, in UTF-8."""

    keyword = "string"
    spark_name = "STRING"
    avro_name = "string"
    json_name = "string"
    reads_plain_json = True
    promoted_from: ClassVar[Promotions] = {
        "avro": ("timestamp(iso8601)", "uuid"),
        "json": ("timestamp(iso8601)", "uuid", "enum", "date", "time", "bytes"),
    }

    @property
    def annotation(self) -> Any:
        """Text."""
        return str

    def text_proof_sql(self, column: str, prove_text: Callable[[str], str]) -> str | None:
        """Return the proof of the text."""
        return prove_text(column)

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", name: str | None) -> None:
        """Scan a length and that many bytes."""
        scan.scan_text(rows, name)

    def invalid_text_sql(self, column: str) -> str | None:
        """Return SQL that is true if a value is not UTF-8, which Avro does not check and readers fail on."""
        return f"NOT is_valid_utf8({column})"

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, _parse: ParseType) -> Self | None:
        """Return the type for text that no other type reads: the formats of a string are hints."""
        is_text = keys.get("logicalType") == "string" and "enum" not in keys
        read_by_others = (keys.get("logicalTypeOptions") or {}).get("format") in ("uuid", "byte", "binary")
        return cls() if is_text and not read_by_others else None
