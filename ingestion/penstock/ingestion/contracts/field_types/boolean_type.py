"""True and false."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from penstock.ingestion.contracts.field_types.field_type import OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.plain_type import PlainType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes


@dataclass(frozen=True, slots=True)
class BooleanType(PlainType):
    """True or false."""

    keyword = "boolean"
    proto_name = "bool"
    spark_name = "BOOLEAN"
    avro_name = "boolean"
    json_name = "boolean"
    reads_plain_json = True

    @property
    def annotation(self) -> Any:
        """A boolean."""
        return bool

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Scan one byte, 0 or 1."""
        scan.scan_boolean(rows)

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, _parse: ParseType) -> Self | None:
        """Return the type for a boolean."""
        return cls() if keys.get("logicalType") == "boolean" else None
