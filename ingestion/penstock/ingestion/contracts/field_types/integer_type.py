"""Base of the integer types: a range, and zigzag varints in Avro."""

from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import msgspec

from penstock.ingestion.contracts.field_types.plain_type import PlainType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes


class IntegerType(PlainType):
    """An integer from `lowest` to `highest`."""

    json_name = "integer"
    lowest: ClassVar[int]
    highest: ClassVar[int]

    @property
    def annotation(self) -> Any:
        """An integer in the range of the type."""
        return Annotated[int, msgspec.Meta(ge=self.lowest, le=self.highest)]

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", name: str | None) -> None:
        """Scan a varint, and check its range."""
        scan.scan_integer(rows, name, self.lowest, self.highest)
