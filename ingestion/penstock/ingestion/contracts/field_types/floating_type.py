"""Base of the floating-point types."""

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

from penstock.ingestion.contracts.field_types.field_type import OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.plain_type import PlainType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes


class FloatingType(PlainType):
    """A number of `width_bytes` bytes. Avro may hold NaN and infinity, which JSON cannot represent."""

    json_name = "number"
    width_bytes: ClassVar[int]
    odcs_format: ClassVar[str]
    """The format of the Open Data Contract Standard, in the words of Rust."""

    @property
    def annotation(self) -> Any:
        """A floating-point number."""
        return float

    def is_finite(self, value: Any) -> bool:
        """Return whether a number is neither NaN nor infinite."""
        return math.isfinite(value)

    def proof_sql(self, column: str) -> str | None:
        """Return SQL that excludes NaN and infinity, which `from_json` reads from text and from large numbers."""
        return f"abs({column}) < double('Infinity')"

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Scan a fixed number of bytes."""
        scan.skip_bytes(rows, self.width_bytes)

    @property
    def odcs_type(self) -> OdcsProperty:
        """A number of so many bits."""
        options = {"format": self.odcs_format}
        return {"logicalType": "number", "logicalTypeOptions": options, "physicalType": self.keyword}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, _parse: ParseType) -> Self | None:
        """Return the type for its format. A number without a format has 64 bits."""
        number_format = (keys.get("logicalTypeOptions") or {}).get("format", "f64")
        return cls() if keys.get("logicalType") == "number" and number_format == cls.odcs_format else None
