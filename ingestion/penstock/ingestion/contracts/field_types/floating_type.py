"""Base of the floating-point types."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias

from penstock.ingestion.contracts.field_types.field_type import OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.plain_type import PlainType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

SpecialNumber: TypeAlias = Literal["NaN", "Infinity", "-Infinity"]


class FloatingType(PlainType):
    """A number of `width_bytes` bytes. In JSON, NaN and infinity are the texts that Spark and panes use."""

    json_name = "number"
    width_bytes: ClassVar[int]
    odcs_format: ClassVar[str]
    """The format of the Open Data Contract Standard, in the words of Rust."""

    @property
    def annotation(self) -> Any:
        """A floating-point number, or the text of a special one."""
        return float | SpecialNumber

    @property
    def stored_converter(self) -> Callable[[Any], Any] | None:
        """A function that returns the number of a text."""
        return float

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that returns the number of a text."""
        return float

    def is_finite(self, value: Any) -> bool:
        """Return whether a number is neither NaN nor infinite."""
        return math.isfinite(float(value))

    def proof_sql(self, column: str) -> str | None:
        """Return SQL that excludes NaN and infinity, which `from_json` reads from other texts and large numbers."""
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
