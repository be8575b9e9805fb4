"""Exact decimal numbers, such as amounts of money."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Self

from penstock.ingestion.contracts.contract_modes import ValueForm
from penstock.ingestion.contracts.field_types.field_type import FieldType, JsonSchema, OdcsProperty, ParseType
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

MAX_PRECISION = 38
_EXACT = Context(prec=2 * MAX_PRECISION)
_SPARK_PATTERN = re.compile(r"DECIMAL\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_INTEGER_DIGITS = {"int": 10, "long": 19}


@dataclass(frozen=True, slots=True)
class DecimalType(FieldType):
    """A number of at most `precision` digits, `scale` of them after the point. It is never rounded.

    JSON has it as a number or as text, `12.50` or `"12.50"`. Text keeps the digits in programs that read numbers as
    doubles.
    """

    precision: int
    scale: int

    keyword = "decimal"
    syntax = "decimal(PRECISION, SCALE)"

    def __str__(self) -> str:
        return f"decimal({self.precision}, {self.scale})"

    @classmethod
    def from_arguments(cls, arguments: str | None, _parse: ParseType) -> Self:
        """Return the type with these digits."""
        match = re.fullmatch(r"\s*(\d+)\s*(?:,\s*(\d+)\s*)?", arguments or "")
        precision, scale = (int(match[1]), int(match[2] or 0)) if match else (0, 0)
        if not 1 <= precision <= MAX_PRECISION or scale > precision:
            raise ContractError(
                f"Type decimal({arguments or ''}) is not valid. Write decimal(PRECISION, SCALE): the number of all "
                f"digits, at most {MAX_PRECISION}, and of those after the point, as in decimal(12, 2)."
            )
        return cls(precision, scale)

    @property
    def expectation(self) -> str:
        """The type and its digits."""
        return (
            f"{self}: at most {self.precision - self.scale} digits before the point and {self.scale} after it"
        )

    @property
    def annotation(self) -> Any:
        """A decimal number."""
        return Decimal

    @property
    def fault_finder(self) -> Callable[[Any], str | None] | None:
        """The check of the digits."""
        return self._find_fault

    def _find_fault(self, value: Decimal) -> str | None:
        if not value.is_finite():
            return f"{value} is not a number"
        scaled = value.scaleb(self.scale, _EXACT)
        is_exact = scaled == scaled.to_integral_value()
        if value.adjusted() < self.precision - self.scale and is_exact:
            return None
        return f"{value} has more digits than {self} allows"

    @property
    def json_converter(self) -> Callable[[Any], Any] | None:
        """A function that writes the number as text without an exponent."""
        return self.to_key_text

    def to_key_text(self, value: Any) -> str:
        """Return the number with all digits of the scale."""
        return str(value.quantize(Decimal(1).scaleb(-self.scale), context=_EXACT))

    @property
    def spark_type(self) -> str:
        """The decimal of Spark."""
        return f"DECIMAL({self.precision}, {self.scale})"

    @classmethod
    def from_spark_type(cls, text: str, _parse: ParseType) -> Self | None:
        """Return the type of a decimal of Spark."""
        match = _SPARK_PATTERN.fullmatch(text)
        return cls(int(match[1]), int(match[2])) if match else None

    @property
    def json_ddl(self) -> str:
        """The decimal with the most digits after the point, because `from_json` rounds what has more."""
        return f"DECIMAL({MAX_PRECISION}, {MAX_PRECISION - (self.precision - self.scale)})"

    def value_sql(self, column: str) -> str:
        """Return SQL for the number in the type of the column."""
        return f"try_cast({column} AS {self.spark_type})"

    def proof_sql(self, column: str) -> str | None:
        """Return SQL that is true if no digit is lost."""
        return f"IF({column} IS NULL, NULL, coalesce({self.value_sql(column)} = {column}, false))"

    def to_avro_type(self, _name: str) -> object:
        """Return the logical type of bytes."""
        return {
            "type": "bytes",
            "logicalType": "decimal",
            "precision": self.precision,
            "scale": self.scale,
        }

    @classmethod
    def from_avro_type(cls, avro_type: Any, _parse: ParseType) -> Self | None:
        """Return the type for a logical type of bytes."""
        is_decimal = isinstance(avro_type, dict) and avro_type.get("logicalType") == "decimal"
        if not is_decimal or avro_type.get("type") != "bytes":
            return None
        return cls(int(avro_type["precision"]), int(avro_type.get("scale", 0)))

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that returns the digits as a big-endian integer."""
        return self._encode

    def _encode(self, value: Decimal) -> bytes:
        unscaled = int(value.scaleb(self.scale, _EXACT))
        return unscaled.to_bytes((unscaled + (unscaled < 0)).bit_length() // 8 + 1, "big", signed=True)

    @property
    def avro_decoder(self) -> Callable[[Any], Any] | None:
        """A function that reads a big-endian integer."""
        return lambda value: Decimal(int.from_bytes(value, "big", signed=True)).scaleb(-self.scale, _EXACT)

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Leave the record to the decoder, which counts the digits."""
        scan.leave_to_decoder(rows)

    @property
    def json_schema(self) -> JsonSchema:
        """A number, or text."""
        return {
            "type": ["number", "string"],
            "format": "decimal",
            "precision": self.precision,
            "scale": self.scale,
        }

    @classmethod
    def from_json_schema(cls, schema: JsonSchema, _parse: ParseType) -> Self | None:
        """Return the type for its format."""
        if schema.get("format") != "decimal" or "precision" not in schema:
            return None
        return cls(schema["precision"], schema.get("scale", 0))

    @property
    def odcs_type(self) -> OdcsProperty:
        """A number whose digits the physical type has."""
        return {"logicalType": "number", "physicalType": str(self)}

    def can_read(self, writer: FieldType, value_form: ValueForm) -> bool:
        """Return whether all digits of the writer fit; Avro does not convert between scales."""
        if self == writer or value_form == "avro":
            return self == writer
        digits_before_point = self.precision - self.scale
        if isinstance(writer, DecimalType):
            return self.scale >= writer.scale and digits_before_point >= writer.precision - writer.scale
        return digits_before_point >= _INTEGER_DIGITS.get(writer.keyword, MAX_PRECISION + 1)
