"""What groups of settings are made of: their base class, and the type of a setting that is a length of time."""

from typing import Any

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import core_schema

from penstock.core.duration import UNITS_MS, parse_duration_ms
from penstock.core.errors import DurationError

SHORT_UNITS = ("d", "h", "m", "s", "ms")


class SettingsSection(BaseModel):
    """A group of settings; unknown names are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class DurationMs(int):
    """A length of time in milliseconds; its text is a duration, in the largest unit that divides it."""

    def __str__(self) -> str:
        unit = next(unit for unit in SHORT_UNITS if self % UNITS_MS[unit] == 0 and (self or unit == "s"))
        return f"{self // UNITS_MS[unit]}{unit}"

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return self / 1000

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, _handler: GetCoreSchemaHandler) -> Any:
        return core_schema.no_info_plain_validator_function(
            parse_setting, serialization=core_schema.to_string_ser_schema()
        )


def parse_setting(value: object) -> DurationMs:
    """Parse a text such as `200ms`; raise ValueError for a text that is not a duration, and for a bare number."""
    if isinstance(value, DurationMs):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{value!r} has no unit. Write a text such as '200ms', '15m' or '7 days'.")  # noqa: TRY004
    try:
        return DurationMs(parse_duration_ms(value))
    except DurationError as error:
        raise ValueError(str(error)) from None
