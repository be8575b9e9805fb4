"""Times of the day."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING, Annotated, Any, Self

import msgspec

from penstock.ingestion.contracts.field_types.field_type import OdcsProperty, ParseType
from penstock.ingestion.contracts.field_types.stored_text_type import StoredTextType

if TYPE_CHECKING:
    from penstock.ingestion.contracts.avro_columns import AvroColumnScan, RowIndexes

_MIDNIGHT = datetime(1970, 1, 1)  # noqa: DTZ001  # a time of day has no zone
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True)
class TimeType(StoredTextType):
    """A time of the day, written as `10:15:30.25`. It is stored as text of 15 characters, `10:15:30.250000`.

    Delta has no type for it. As text of one length it compares and sorts as a time.
    """

    keyword = "time"
    avro_name = "long"

    @property
    def expectation(self) -> str:
        """The type and how it is written."""
        return "time of day as in 10:15:30 or 10:15:30.25, without an offset"

    @property
    def annotation(self) -> Any:
        """A time without a zone."""
        return Annotated[time, msgspec.Meta(tz=False)]

    def to_key_text(self, value: Any) -> str:
        """Return the text of 15 characters."""
        return str(value.isoformat("microseconds"))

    def value_sql(self, column: str) -> str:
        """Return SQL that adds the digits that are not written."""
        return f"rpad(IF(length({column}) = 8, concat({column}, '.'), {column}), 15, '0')"

    def proof_sql(self, column: str) -> str | None:
        """Return SQL for the pattern of the text."""
        return f"{column} RLIKE '^([01][0-9]|2[0-3])(:[0-5][0-9]){{2}}([.][0-9]{{1,6}})?$'"

    def to_avro_type(self, _name: str) -> object:
        """Return the logical type of a long."""
        return {"type": "long", "logicalType": "time-micros"}

    def to_avro_reader_type(self, _name: str) -> object:
        """Return the primitive type: Spark would convert a logical type by itself."""
        return "long"

    @property
    def avro_ddl(self) -> str:
        """Microseconds since midnight."""
        return "BIGINT"

    def avro_value_sql(self, column: str) -> str:
        """Return SQL for the text."""
        return f"date_format(timestamp_micros({column}), 'HH:mm:ss.SSSSSS')"

    @classmethod
    def from_avro_type(cls, avro_type: Any, _parse: ParseType) -> Self | None:
        """Return the type for the logical type."""
        return cls() if avro_type == {"type": "long", "logicalType": "time-micros"} else None

    @property
    def avro_encoder(self) -> Callable[[Any], Any] | None:
        """A function that returns the microseconds since midnight."""
        return lambda value: (datetime.combine(_MIDNIGHT, value) - _MIDNIGHT) // timedelta(microseconds=1)

    @property
    def avro_decoder(self) -> Callable[[Any], Any] | None:
        """A function that returns the time, or the number if it is not within a day."""
        return lambda value: (
            (_MIDNIGHT + timedelta(microseconds=value)).time() if 0 <= value < _DAY_US else value
        )

    def invalid_text_sql(self, column: str) -> str | None:
        """Return SQL that is true for a number that is not within a day."""
        return f"NOT ({column} >= 0 AND {column} < {_DAY_US})"

    def scan_avro(self, scan: "AvroColumnScan", rows: "RowIndexes", _name: str | None) -> None:
        """Scan a number of microseconds."""
        scan.scan_integer(rows, None, 0, _DAY_US - 1)

    @property
    def odcs_type(self) -> OdcsProperty:
        """A time with its format."""
        options = {"format": "HH:mm:ss[.SSSSSS]", "timezone": False}
        return {"logicalType": "time", "logicalTypeOptions": options, "physicalType": self.keyword}

    @classmethod
    def from_odcs_type(cls, keys: OdcsProperty, _parse: ParseType) -> Self | None:
        """Return the type for a time of the day without an offset."""
        has_offset = (keys.get("logicalTypeOptions") or {}).get("timezone", False)
        return cls() if keys.get("logicalType") == "time" and not has_offset else None
