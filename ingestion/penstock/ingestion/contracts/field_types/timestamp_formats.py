"""How timestamps are written: the formats of the type `timestamp`, and the guess of the format of a value."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from zoneinfo import ZoneInfo

import msgspec

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LOWEST_TIME_MS = -62_135_596_800_000
HIGHEST_TIME_MS = 253_402_300_799_999
"""The years 1 to 9999, which Python, Spark and Delta all support."""
_LOWEST_LONG, _HIGHEST_LONG = -(2**63), 2**63 - 1
_PLAUSIBLE_SECONDS = range(1_000_000_000, 4_102_444_800)
"""The years 2001 to 2099 in seconds: a number of another unit in this range is taken for a mistake."""
ISO_PATTERN = (
    r"^(?!0000)\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}"
    # Python rounds to microseconds, Spark cuts off. They agree unless a fraction is rounded up to a millisecond.
    r"(\.(\d{1,6}|\d{3}(?!999)\d{4,6}))?"
)
ISO_OFFSET_PATTERN = r"(Z|[+-]\d{2}:?\d{2})$"


@dataclass(frozen=True)
class TimestampFormat(ABC):
    """A way to write a time. The stored value is milliseconds since the epoch; finer digits are cut off.

    `phrase` describes it in messages. `json_ddl` is the type of Spark that holds a wire value,
    and `reader_type` the primitive type of Avro.
    """

    name: str
    phrase: str
    json_ddl: str
    reader_type: str

    @property
    @abstractmethod
    def annotation(self) -> Any:
        """The annotation of a wire value."""

    @property
    def avro_type(self) -> object:
        """The type in a registered Avro schema."""
        return self.reader_type

    @abstractmethod
    def find_fault(self, value: Any) -> str | None:
        """Return what is wrong with a decoded value, or None."""

    @abstractmethod
    def to_epoch_ms(self, value: Any) -> int:
        """Return the milliseconds of a decoded value."""

    @abstractmethod
    def from_datetime(self, value: datetime) -> Any:
        """Return the decoded value of a time."""

    @abstractmethod
    def to_ms_sql(self, column: str) -> str:
        """Return SQL for the milliseconds of a wire value."""

    @abstractmethod
    def from_ms_sql(self, milliseconds: str) -> str:
        """Return SQL for the wire value of milliseconds."""

    @abstractmethod
    def proof_sql(self, column: str) -> str:
        """Return SQL that is true only for valid wire values."""

    @abstractmethod
    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", name: str | None) -> None:
        """Scan a value in a batch of Avro records."""


@dataclass(frozen=True)
class EpochFormat(TimestampFormat):
    """A number of units since 1970-01-01T00:00:00Z; a second has `per_second` of them."""

    per_second: int
    logical_type: str | None

    @property
    def lowest(self) -> int:
        """The first number of the supported years that fits into 64 bits."""
        return max(LOWEST_TIME_MS * self.per_second // 1000, _LOWEST_LONG + self.per_second)

    @property
    def highest(self) -> int:
        """The last number of the supported years that fits into 64 bits."""
        return min((HIGHEST_TIME_MS + 1) * self.per_second // 1000 - 1, _HIGHEST_LONG)

    @property
    def annotation(self) -> Any:
        """An integer."""
        return Annotated[int, msgspec.Meta(ge=self.lowest, le=self.highest)]

    @property
    def avro_type(self) -> object:
        """A long with its logical type."""
        return {"type": "long", "logicalType": self.logical_type} if self.logical_type else "long"

    @property
    def implausible_ranges(self) -> tuple[tuple[int, int], ...]:
        """The ranges, without their ends, of numbers that are more likely in a larger unit."""
        larger_units = [each.per_second for each in EPOCH_FORMATS if each.per_second < self.per_second]
        return tuple(
            (_PLAUSIBLE_SECONDS.start * per_second, _PLAUSIBLE_SECONDS.stop * per_second)
            for per_second in larger_units
        )

    def find_fault(self, value: Any) -> str | None:
        """Return which unit a number seems to have, if it is not this one."""
        if not any(start <= value < stop for start, stop in self.implausible_ranges):
            return None
        instant = UNIX_EPOCH + timedelta(milliseconds=self.to_epoch_ms(value))
        return f"that is {instant:%Y-%m-%d}; declare format: {guess_unit(value)}"

    def to_epoch_ms(self, value: Any) -> int:
        """Return the milliseconds, rounded down."""
        return int(value) * 1000 // self.per_second

    def from_datetime(self, value: datetime) -> Any:
        """Return the number of units, rounded to microseconds."""
        microseconds = (value - UNIX_EPOCH) // timedelta(microseconds=1)
        return (
            microseconds * (self.per_second // 1_000_000)
            if self.per_second > 1_000_000
            else round(microseconds * self.per_second / 1_000_000)
        )

    def to_ms_sql(self, column: str) -> str:
        """Return SQL that divides, rounding down, or multiplies."""
        if self.per_second == 1000:
            return column
        if self.per_second < 1000:
            return f"({column} * {1000 // self.per_second})"
        step = self.per_second // 1000
        return f"(({column} - pmod({column}, {step}L)) div {step})"

    def from_ms_sql(self, milliseconds: str) -> str:
        """Return SQL that multiplies, or divides and rounds down."""
        if self.per_second == 1000:
            return milliseconds
        if self.per_second > 1000:
            return f"({milliseconds} * {self.per_second // 1000}L)"
        step = 1000 // self.per_second
        return f"(({milliseconds} - pmod({milliseconds}, {step}L)) div {step})"

    def proof_sql(self, column: str) -> str:
        """Return SQL for the supported years, without numbers of another unit."""
        implausible = [
            f" AND NOT ({column} >= {start} AND {column} < {stop})" for start, stop in self.implausible_ranges
        ]
        return f"({column} BETWEEN {self.lowest} AND {self.highest}{''.join(implausible)})"

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", name: str | None) -> None:
        """Scan a varint, and check its range."""
        scan.scan_integer(rows, name, self.lowest, self.highest, self.implausible_ranges)


@dataclass(frozen=True)
class IsoFormat(TimestampFormat):
    """Text as in ISO 8601, with an offset; where a time zone is declared, it applies to text without an offset."""

    timezone: str | None = None

    @property
    def annotation(self) -> Any:
        """A time, with a time zone unless the contract declares one."""
        return datetime if self.timezone else Annotated[datetime, msgspec.Meta(tz=True)]

    def find_fault(self, value: Any) -> str | None:
        """Return that a time is not in the supported years in UTC."""
        try:
            self._to_utc(value)
        except OverflowError:
            return f"{value.isoformat()} is not in the years 1 to 9999 in UTC"
        return None

    def to_epoch_ms(self, value: Any) -> int:
        """Return the milliseconds, rounded down."""
        return (self._to_utc(value) - UNIX_EPOCH) // timedelta(milliseconds=1)

    def from_datetime(self, value: datetime) -> Any:
        """Return the time itself."""
        return value

    def to_canonical(self, value: datetime) -> datetime:
        """Return the time in UTC, whose text Spark reads whatever the offset was."""
        return self._to_utc(value)

    def to_ms_sql(self, column: str) -> str:
        """Return SQL that parses the text, without Python."""
        parsed = f"try_cast({column} AS TIMESTAMP)"
        if self.timezone:
            local = f"to_utc_timestamp({parsed}, '{self.timezone}')"
            parsed = f"IF({column} RLIKE '{_escape(ISO_OFFSET_PATTERN)}', {parsed}, {local})"
        return f"unix_millis({parsed})"

    def from_ms_sql(self, milliseconds: str) -> str:
        """Return SQL that formats the time in UTC."""
        pattern = "yyyy-MM-dd\\'T\\'HH:mm:ss.SSS\\'Z\\'"
        return f"date_format(timestamp_millis({milliseconds}), '{pattern}')"

    def proof_sql(self, column: str) -> str:
        """Return SQL for the pattern of the text, and a valid day and time."""
        offset_pattern = f"{ISO_OFFSET_PATTERN[:-1]}?$" if self.timezone else ISO_OFFSET_PATTERN
        in_range = f"{self.to_ms_sql(column)} BETWEEN {LOWEST_TIME_MS} AND {HIGHEST_TIME_MS}"
        pattern = _escape(ISO_PATTERN + offset_pattern)
        return f"IF({column} IS NULL, NULL, {column} RLIKE '{pattern}' AND coalesce({in_range}, false))"

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Leave the record to the decoder: a scan cannot tell whether text is a time."""
        scan.leave_to_decoder(rows)

    def _to_utc(self, value: datetime) -> datetime:
        if value.tzinfo is None:
            value = value.replace(tzinfo=ZoneInfo(self.timezone or "UTC"))
        return value.astimezone(UTC)


def _escape(pattern: str) -> str:
    """Return a pattern as the text of an SQL literal."""
    return pattern.replace("\\", "\\\\")


EPOCH_FORMATS = (
    EpochFormat("seconds", "epoch seconds", "BIGINT", "long", 1, None),
    EpochFormat("millis", "epoch milliseconds", "BIGINT", "long", 1000, "timestamp-millis"),
    EpochFormat("micros", "epoch microseconds", "BIGINT", "long", 1_000_000, "timestamp-micros"),
    EpochFormat("nanos", "epoch nanoseconds", "BIGINT", "long", 1_000_000_000, "timestamp-nanos"),
)
ISO_FORMAT = IsoFormat("iso8601", "ISO 8601 with an offset", "STRING", "string")
FORMATS_BY_NAME: Mapping[str, TimestampFormat] = {each.name: each for each in (*EPOCH_FORMATS, ISO_FORMAT)}
DEFAULT_FORMAT = FORMATS_BY_NAME["millis"]


def guess_unit(number: int) -> str | None:
    """Return the unit in which a number is a time of this century."""
    return next(
        (each.name for each in EPOCH_FORMATS if number // each.per_second in _PLAUSIBLE_SECONDS), None
    )


def suggest_format(value: object) -> str | None:
    """Return what to declare so that a value is a timestamp, or None if it is none in any format."""
    match value:
        case bool():
            return None
        case int():
            unit = guess_unit(value)
            return f"declare format: {unit}" if unit else None
        case str() if re.match(r"\d{4}-\d{2}-\d{2}[T ]\d", value):
            has_offset = re.search(ISO_OFFSET_PATTERN, value)
            return "declare format: iso8601" + (
                "" if has_offset else " and a timezone, such as timezone: UTC"
            )
        case _:
            return None
