"""Points in time, in one of several formats, all stored as milliseconds since the epoch, UTC."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Self
from zoneinfo import ZoneInfo, available_timezones

import msgspec

from penstock.core.names import suggest_name
from penstock.ingestion.contracts.contract_modes import ValueForm
from penstock.ingestion.contracts.field_types.field_type import FieldType, JsonSchema, OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.timestamp_formats import (
    DEFAULT_FORMAT,
    FORMATS_BY_NAME,
    EpochFormat,
    IsoFormat,
    TimestampFormat,
    suggest_format,
)
from penstock.ingestion.contracts.protobuf.proto_shape import ProtoScalar, ProtoShape
from penstock.ingestion.errors import ContractError, InvalidRecordError

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

_INTEGER_PATTERN = re.compile(r"(?i)(big)?int|long")


@cache
def _list_time_zones() -> frozenset[str]:
    """Return the names of all time zones. Finding them reads hundreds of files."""
    return frozenset(available_timezones())


@dataclass(frozen=True, slots=True)
class TimestampType(FieldType):
    """A time in the years 1 to 9999. A contract declares it as `type: timestamp`, with `format: NAME`."""

    format: TimestampFormat = DEFAULT_FORMAT

    keyword = "timestamp"
    syntax = "timestamp(FORMAT)"

    def __str__(self) -> str:
        if self.format == DEFAULT_FORMAT:
            return self.keyword
        timezone = self.format.timezone if isinstance(self.format, IsoFormat) else None
        return f"{self.keyword}({', '.join(filter(None, (self.format.name, timezone)))})"

    @classmethod
    def from_arguments(cls, arguments: str | None, _parse: ParseType) -> Self:
        """Return the type for a format, and a time zone for ISO 8601."""
        if arguments is None:
            return cls()
        name, _, timezone = (part.strip() for part in arguments.partition(","))
        if name not in FORMATS_BY_NAME:
            raise ContractError(
                f"'{name}' is not a format of timestamps.{suggest_name(name, FORMATS_BY_NAME)} "
                f"Formats: {', '.join(FORMATS_BY_NAME)}."
            )
        timestamp_format = FORMATS_BY_NAME[name]
        if not timezone:
            return cls(timestamp_format)
        if not isinstance(timestamp_format, IsoFormat):
            raise ContractError(f"Format {name} counts from 1970 in UTC and takes no timezone. Remove it.")
        if timezone not in _list_time_zones():
            suggestion = suggest_name(timezone, sorted(_list_time_zones()))
            raise ContractError(
                f"'{timezone}' is not a time zone.{suggestion} Use a name such as Europe/Paris."
            )
        return cls(replace(timestamp_format, timezone=timezone))

    @property
    def is_timestamp(self) -> bool:
        """A timestamp is one."""
        return True

    @property
    def expectation(self) -> str:
        """The type and its format in words."""
        return f"timestamp in {self.format.phrase}"

    def suggest_fix(self, value: object) -> str | None:
        """Return the format in which a value is a timestamp, or what its text lacks."""
        fix = suggest_format(value)
        if fix is None or not isinstance(self.format, IsoFormat) or not isinstance(value, str):
            return fix
        return "add an offset, or declare a timezone, such as timezone: UTC"

    def to_epoch_ms(self, value: Any) -> int:
        """Return the milliseconds of a decoded value."""
        return self.format.to_epoch_ms(value)

    @property
    def annotation(self) -> Any:
        """The annotation of the format."""
        return self.format.annotation

    @property
    def fault_finder(self) -> Callable[[Any], str | None] | None:
        """The check of the format."""
        return self.format.find_fault

    @property
    def json_converter(self) -> Callable[[Any], Any] | None:
        """A function that converts text to UTC."""
        return self.format.to_canonical if isinstance(self.format, IsoFormat) else None

    @property
    def stored_converter(self) -> Callable[[Any], Any] | None:
        """A function that returns the milliseconds."""
        return None if self.format == DEFAULT_FORMAT else self.to_epoch_ms

    def to_key_text(self, value: Any) -> str:
        """Return a number, or the text of a time in UTC."""
        convert = self.json_converter
        return str(value) if convert is None else str(msgspec.to_builtins(convert(value)))

    def normalize_row_value(self, value: Any) -> Any:
        """Return a date, a time or a text in ISO 8601 in the format; UTC if it has no time zone."""
        if isinstance(value, str) and not _is_integer(value):
            try:
                value = datetime.fromisoformat(value)
            except ValueError:
                return value
        if isinstance(value, date):
            return self.format.from_datetime(self._as_datetime(value))
        if isinstance(self.format, IsoFormat):
            # The decoder of rows would take a number for seconds.
            raise InvalidRecordError("wrong_type", f"expected {self.expectation}, found {value}")
        return value

    def _as_datetime(self, value: date) -> datetime:
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)  # noqa: DTZ001  # the zone is added below
        timezone = self.format.timezone if isinstance(self.format, IsoFormat) else None
        return value if value.tzinfo else value.replace(tzinfo=ZoneInfo(timezone) if timezone else UTC)

    @property
    def spark_type(self) -> str:
        """Milliseconds, whatever the format is."""
        return "BIGINT"

    @classmethod
    def from_spark_type(cls, _text: str, _parse: ParseType) -> Self | None:
        """Return None: a BIGINT is a `long`."""
        return None

    @property
    def json_ddl(self) -> str:
        """The type of the wire value."""
        return self.format.json_ddl

    def value_sql(self, column: str) -> str:
        """Return SQL for the milliseconds."""
        return self.format.to_ms_sql(column)

    def wire_sql(self, stored: str) -> str:
        """Return SQL for the wire value."""
        return self.format.from_ms_sql(stored)

    def proof_sql(self, column: str) -> str | None:
        """Return SQL for the check of the format."""
        return self.format.proof_sql(column)

    def to_avro_type(self, _name: str) -> object:
        """Return the type of the format."""
        return self.format.avro_type

    def to_avro_reader_type(self, _name: str) -> object:
        """Return the primitive type: Spark would convert a logical type by itself."""
        return self.format.reader_type

    @property
    def avro_ddl(self) -> str:
        """The type of the wire value."""
        return self.format.json_ddl

    def avro_value_sql(self, column: str) -> str:
        """Return SQL for the milliseconds."""
        return self.value_sql(column)

    @classmethod
    def from_avro_type(cls, avro_type: Any, _parse: ParseType) -> Self | None:
        """Return the type for a logical type. Seconds and ISO 8601 have none: they are long and string."""
        formats = (each for each in FORMATS_BY_NAME.values() if isinstance(each, EpochFormat))
        return next(
            (cls(each) for each in formats if each.logical_type and each.avro_type == avro_type), None
        )

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that formats a time as text, for ISO 8601."""
        if not isinstance(self.format, IsoFormat):
            return None
        to_utc = self.format.to_canonical
        return lambda value: msgspec.to_builtins(to_utc(value))

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", name: str | None) -> None:
        """Scan a value of the format."""
        self.format.scan_avro(scan, rows, name)

    def invalid_text_sql(self, column: str) -> str | None:
        """Return SQL that is true for text that is not a time."""
        return f"NOT {self.format.proof_sql(column)}" if isinstance(self.format, IsoFormat) else None

    @property
    def proto_shape(self) -> ProtoShape:
        """A number since the epoch, or text."""
        return ProtoScalar("string" if isinstance(self.format, IsoFormat) else "int64")

    @property
    def json_schema(self) -> JsonSchema:
        """An integer, or text, with the format."""
        if self.format == DEFAULT_FORMAT:
            return {"type": "integer", "format": "timestamp"}
        if isinstance(self.format, IsoFormat):
            timezone = {"timezone": self.format.timezone} if self.format.timezone else {}
            return {"type": "string", "format": "date-time", **timezone}
        return {"type": "integer", "format": f"timestamp-{self.format.name}"}

    @classmethod
    def from_json_schema(cls, schema: JsonSchema, parse: ParseType) -> Self | None:
        """Return the type for its format."""
        name = str(schema.get("format", ""))
        if name == "date-time":
            timezone = schema.get("timezone")
            return cls.from_arguments(f"iso8601, {timezone}" if timezone else "iso8601", parse)
        unit = name.removeprefix("timestamp").removeprefix("-") or DEFAULT_FORMAT.name
        is_timestamp = name.startswith("timestamp") and unit in FORMATS_BY_NAME
        return cls(FORMATS_BY_NAME[unit]) if is_timestamp else None

    @property
    def promotion_name(self) -> str:
        """The keyword for numbers, which are read as such; text is read as text."""
        return "timestamp(iso8601)" if isinstance(self.format, IsoFormat) else self.keyword

    @property
    def odcs_type(self) -> OdcsProperty:
        """A timestamp; text has the pattern of Java. The physical type names the format of a number."""
        if not isinstance(self.format, IsoFormat):
            return {"logicalType": "timestamp", "physicalType": f"timestamp({self.format.name})"}
        zone = {"defaultTimezone": self.format.timezone} if self.format.timezone else {}
        offset = "[XXX]" if zone else "XXX"
        options = {"format": f"yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]{offset}", "timezone": not zone, **zone}
        return {"logicalType": "timestamp", "logicalTypeOptions": options, "physicalType": str(self)}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, parse: ParseType) -> Self | None:
        """Return the type for a timestamp: text in ISO 8601, unless it is stored as an integer."""
        if keys.get("logicalType") != "timestamp":
            return None
        if _INTEGER_PATTERN.match(str(keys.get("physicalType", ""))):
            return cls()
        options = keys.get("logicalTypeOptions") or {}
        if options.get("timezone", "defaultTimezone" not in options):
            return cls(FORMATS_BY_NAME["iso8601"])
        return cls.from_arguments(f"iso8601, {options.get('defaultTimezone', 'UTC')}", parse)

    def can_read(self, writer: FieldType, value_form: ValueForm) -> bool:
        """Return whether the format is the same, or the writer's numbers have no unit of their own."""
        if self == writer:
            return True
        if isinstance(writer, TimestampType):
            formats = (self.format, writer.format)
            # A declared time zone only adds text that is accepted.
            return all(isinstance(each, IsoFormat) for each in formats) and not _timezone_of(writer)
        if value_form == "json":
            # Numbers that seem to be of a larger unit are refused, which not every old number would pass.
            accepts_each = isinstance(self.format, EpochFormat) and not self.format.implausible_ranges
            return accepts_each and writer.promotion_name == "int"
        # Schemas without logical types have the primitive type only.
        readable = ("string",) if isinstance(self.format, IsoFormat) else ("int", "long")
        return writer.promotion_name in readable


def _timezone_of(field_type: TimestampType) -> str | None:
    return field_type.format.timezone if isinstance(field_type.format, IsoFormat) else None


def _is_integer(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


DEFAULT_TIMESTAMP = TimestampType()
"""A timestamp without a declared format. Its wire value and its stored value are the same."""
