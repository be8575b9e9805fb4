"""Points in time: milliseconds since the epoch, UTC, the same number in JSON, in Avro and in Spark."""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, ClassVar, Self

from penstock.ingestion.contracts.field_types.field_type import ParseType
from penstock.ingestion.contracts.field_types.integer_type import IntegerType
from penstock.ingestion.contracts.field_types.plain_type import Promotions

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TimestampType(IntegerType):
    """A time in the years 1 to 9999: the range that Python, Spark and Delta all support."""

    keyword = "timestamp"
    spark_name = "BIGINT"
    avro_name = "long"
    promoted_from: ClassVar[Promotions] = {"avro": ("int", "long"), "json": ("int",)}
    lowest = -62_135_596_800_000
    highest = 253_402_300_799_999

    @classmethod
    def from_spark_type(cls, _text: str, _parse: ParseType) -> Self | None:
        """Return None: a BIGINT is a `long`."""
        return None

    @classmethod
    def from_avro_type(cls, _avro_type: Any, _parse: ParseType) -> Self | None:
        """Return None: a long is a `long`."""
        return None

    def proof_sql(self, column: str) -> str | None:
        """Return SQL for the range of the type."""
        return f"{column} BETWEEN {self.lowest} AND {self.highest}"

    def normalize_row_value(self, value: Any) -> Any:
        """Return the milliseconds of a date, a time or a text in ISO 8601; UTC if it has no time zone."""
        if isinstance(value, str) and not value.isdecimal():
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return value
        return _to_epoch_ms(value) if isinstance(value, date) else value


def _to_epoch_ms(value: date) -> int:
    """Return the milliseconds of a time, or of the start of a day."""
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    since_epoch = value.replace(tzinfo=value.tzinfo or UTC) - _EPOCH
    return round(since_epoch / timedelta(milliseconds=1))
