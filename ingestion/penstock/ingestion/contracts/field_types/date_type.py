"""Days of the calendar."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from penstock.ingestion.contracts.field_types.field_type import OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.plain_type import PlainType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

_EPOCH_DAY = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class DateType(PlainType):
    """A day in the years 1 to 9999, written as `2026-01-31`. In Avro it is the number of days since 1970."""

    keyword = "date"
    spark_name = "DATE"
    avro_name = "int"
    json_name = "string"

    @property
    def expectation(self) -> str:
        """The type and how it is written."""
        return "date as in 2026-01-31"

    @property
    def annotation(self) -> Any:
        """A date."""
        return date

    def normalize_row_value(self, value: Any) -> Any:
        """Return the day of a time at midnight, which some files have in place of a date."""
        is_midnight = isinstance(value, datetime) and value.time() == datetime.min.time()
        return value.date() if is_midnight else value

    @property
    def json_ddl(self) -> str:
        """Text."""
        return "STRING"

    def value_sql(self, column: str) -> str:
        """Return SQL that parses the text."""
        return f"try_cast({column} AS DATE)"

    def wire_sql(self, stored: str) -> str:
        """Return SQL for the text."""
        return f"cast({stored} AS STRING)"

    def proof_sql(self, column: str) -> str | None:
        """Return SQL for the pattern of the text, and a day that exists."""
        pattern = r"^(?!0000)\\d{4}-\\d{2}-\\d{2}$"
        is_day = f"{self.value_sql(column)} IS NOT NULL"
        return f"IF({column} IS NULL, NULL, {column} RLIKE '{pattern}' AND {is_day})"

    def to_avro_type(self, _name: str) -> object:
        """Return the logical type of an int."""
        return {"type": "int", "logicalType": "date"}

    @classmethod
    def from_avro_type(cls, avro_type: Any, _parse: ParseType) -> Self | None:
        """Return the type for the logical type."""
        return cls() if avro_type == {"type": "int", "logicalType": "date"} else None

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that returns the days since 1970."""
        return lambda value: (value - _EPOCH_DAY).days

    @property
    def avro_decoder(self) -> Callable[[Any], Any] | None:
        """A function that returns the day, or the number if there is no such day."""
        return _to_day

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Scan a number of days."""
        scan.scan_integer(rows, None, (date.min - _EPOCH_DAY).days, (date.max - _EPOCH_DAY).days)

    @property
    def odcs_type(self) -> OdcsProperty:
        """A date with its format."""
        return {
            "logicalType": "date",
            "logicalTypeOptions": {"format": "yyyy-MM-dd"},
            "physicalType": self.keyword,
        }

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, _parse: ParseType) -> Self | None:
        """Return the type for a date."""
        return cls() if keys.get("logicalType") == "date" else None


def _to_day(days: int) -> Any:
    try:
        return _EPOCH_DAY + timedelta(days=days)
    except OverflowError:
        return days
