"""One of several words."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from penstock.core.names import suggest_name
from penstock.ingestion.contracts.contract_modes import ValueForm
from penstock.ingestion.contracts.field_types.field_type import FieldType, JsonSchema, OdcsProperty, ParseType
from penstock.ingestion.errors import ContractError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

_SYMBOL_PATTERN = re.compile(r"[\w][\w .:/+-]*")
_AVRO_SYMBOL_PATTERN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class EnumType(FieldType):
    """One of several symbols, stored as text."""

    symbols: tuple[str, ...]

    keyword = "enum"
    syntax = "enum(SYMBOL, ...)"

    def __str__(self) -> str:
        return f"enum({', '.join(self.symbols)})"

    @classmethod
    def from_arguments(cls, arguments: str | None, _parse: ParseType) -> Self:
        """Return the type with these symbols."""
        symbols = tuple(part.strip() for part in (arguments or "").split(","))
        for symbol in symbols:
            if not _SYMBOL_PATTERN.fullmatch(symbol):
                raise ContractError(
                    f"Type enum has the symbol {symbol!r}. Name its symbols, as in enum(new, paid), "
                    "or symbols: [new, paid]; use letters, digits and _ . : / + - in them."
                )
        if len(set(symbols)) != len(symbols):
            raise ContractError(f"Type {cls.keyword} names a symbol twice: {', '.join(sorted(symbols))}.")
        return cls(symbols)

    @property
    def expectation(self) -> str:
        """The symbols."""
        return f"one of {', '.join(self.symbols)}"

    def suggest_fix(self, value: object) -> str | None:
        """Return the nearest symbol."""
        return suggest_name(value, self.symbols).strip() or None if isinstance(value, str) else None

    @property
    def annotation(self) -> Any:
        """One of the symbols."""
        return Literal[self.symbols]

    @property
    def spark_type(self) -> str:
        """Text."""
        return "STRING"

    @classmethod
    def from_spark_type(cls, _text: str, _parse: ParseType) -> Self | None:
        """Return None: a STRING is a `string`."""
        return None

    def proof_sql(self, column: str) -> str | None:
        """Return SQL that is true for a symbol that no other JSON value is read as."""
        texts = [symbol for symbol in self.symbols if not re.match(r"[-0-9]|(true|false)$", symbol)]
        quoted = ", ".join(f"'{symbol}'" for symbol in texts)
        return f"{column} IN ({quoted})" if texts else f"IF({column} IS NULL, NULL, false)"

    def to_avro_type(self, name: str) -> object:
        """Return the enum of Avro; raise ContractError for a symbol that Avro does not allow."""
        for symbol in self.symbols:
            if not _AVRO_SYMBOL_PATTERN.fullmatch(symbol):
                raise ContractError(
                    f"Symbol {symbol!r} is not allowed in Avro. Start with a letter, and use letters, digits and _."
                )
        return {"type": "enum", "name": name, "symbols": list(self.symbols)}

    @classmethod
    def from_avro_type(cls, avro_type: Any, _parse: ParseType) -> Self | None:
        """Return the type for an enum of Avro."""
        is_enum = isinstance(avro_type, dict) and avro_type.get("type") == "enum"
        return cls(tuple(avro_type["symbols"])) if is_enum else None

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Scan the number of a symbol."""
        scan.scan_integer(rows, None, 0, len(self.symbols) - 1)

    @property
    def json_schema(self) -> JsonSchema:
        """Text that is one of the symbols."""
        return {"type": "string", "enum": list(self.symbols)}

    @classmethod
    def from_json_schema(cls, schema: JsonSchema, _parse: ParseType) -> Self | None:
        """Return the type for the values that are not null."""
        symbols = tuple(value for value in schema.get("enum", ()) if value is not None)
        return cls(symbols) if symbols and all(isinstance(symbol, str) for symbol in symbols) else None

    @property
    def odcs_type(self) -> OdcsProperty:
        """Text with its values."""
        values = [{"value": symbol} for symbol in self.symbols]
        return {"logicalType": "string", "physicalType": "enum", "enum": values}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, parse: ParseType) -> Self | None:
        """Return the type for text with values."""
        if keys.get("logicalType") != "string" or not keys.get("enum"):
            return None
        symbols = tuple(str(value["value"]) for value in keys["enum"])
        parsed = cls.from_arguments(", ".join(symbols), parse)
        if parsed.symbols != symbols:
            raise ContractError(f"Type enum cannot have these symbols: {list(symbols)}.")
        return parsed

    def can_read(self, writer: FieldType, _value_form: ValueForm) -> bool:
        """Return whether it has all symbols of the writer."""
        return isinstance(writer, EnumType) and set(writer.symbols) <= set(self.symbols)
