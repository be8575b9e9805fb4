"""Base of the floating-point types."""

import math
from typing import TYPE_CHECKING, Any, ClassVar

from penstock.ingestion.contracts.field_types.plain_type import PlainType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes


class FloatingType(PlainType):
    """A number of `width_bytes` bytes. Avro may hold NaN and infinity, which JSON cannot represent."""

    json_name = "number"
    width_bytes: ClassVar[int]

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
