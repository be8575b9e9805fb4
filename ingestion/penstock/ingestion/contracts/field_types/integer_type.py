"""Base of the integer types: a range, and zigzag varints in Avro."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

import msgspec

from penstock.ingestion.contracts.field_types.field_type import OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.plain_type import PlainType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes


class IntegerType(PlainType):
    """An integer from `lowest` to `highest`."""

    json_name = "integer"
    lowest: ClassVar[int]
    highest: ClassVar[int]
    odcs_format: ClassVar[str]
    """The format of the Open Data Contract Standard, in the words of Rust."""
    odcs_formats: ClassVar[tuple[str | None, ...]]
    """All formats whose numbers fit."""

    @property
    def annotation(self) -> Any:
        """An integer in the range of the type."""
        return Annotated[int, msgspec.Meta(ge=self.lowest, le=self.highest)]

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", name: str | None) -> None:
        """Scan a varint, and check its range."""
        scan.scan_integer(rows, name, self.lowest, self.highest)

    @property
    def odcs_type(self) -> OdcsProperty:
        """An integer of so many bits."""
        options = {"format": self.odcs_format}
        return {"logicalType": "integer", "logicalTypeOptions": options, "physicalType": self.keyword}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, _parse: ParseType) -> Self | None:
        """Return the type for an integer that needs its bits."""
        is_integer = keys.get("logicalType") == "integer"
        return cls() if is_integer and _format_of(keys) in cls.odcs_formats else None


def _format_of(keys: OdcsProperty) -> str | None:
    options = keys.get("logicalTypeOptions") or {}
    return str(options["format"]) if "format" in options else None
