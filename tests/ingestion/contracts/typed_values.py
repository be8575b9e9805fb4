"""Random values of each type: as decoded by Python, and as stored in a column of Spark."""

import base64
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class TypedValue(NamedTuple):
    """A value of a type. `member` is what a JSON encoder writes for it."""

    member: Any
    stored: Any


MakeValue = Callable[[random.Random], TypedValue]


def make_plain(make: Callable[[random.Random], Any]) -> MakeValue:
    """Return a maker of values that are stored as they are written."""

    def make_value(rng: random.Random) -> TypedValue:
        value = make(rng)
        return TypedValue(value, value)

    return make_value


def make_time(rng: random.Random) -> datetime:
    """Return a time of this century, with a random offset and random digits of a fraction."""
    microseconds = rng.randrange(1_000_000_000_000_000, 4_000_000_000_000_000)
    instant = UNIX_EPOCH + timedelta(microseconds=microseconds)
    return instant.astimezone(timezone(timedelta(minutes=rng.randint(-18 * 60, 18 * 60))))


def make_epoch(per_second: int) -> MakeValue:
    """Return a maker of numbers since the epoch."""

    def make_value(rng: random.Random) -> TypedValue:
        number = rng.randrange(1_000_000_000 * per_second, 4_000_000_000 * per_second)
        return TypedValue(number, number * 1000 // per_second)

    return make_value


def make_iso_text(rng: random.Random) -> TypedValue:
    """Return text of a time with 0 to 9 digits of a fraction."""
    instant = make_time(rng).replace(microsecond=0)
    digits = "".join(rng.choices("0123456789", k=rng.randrange(10)))
    text, offset = instant.isoformat()[:19], instant.isoformat()[19:]
    written_offset = "Z" if offset == "+00:00" else rng.choice([offset, offset.replace(":", "")])
    nanoseconds = int(digits.ljust(9, "0") or 0)
    if len(digits) > 6:
        # Python rounds to microseconds.
        nanoseconds = round(nanoseconds / 1000) * 1000
    milliseconds = (instant - UNIX_EPOCH) // timedelta(milliseconds=1) + nanoseconds // 1_000_000
    return TypedValue(f"{text}{'.' if digits else ''}{digits}{written_offset}", milliseconds)


WORDS = ["", "a", "wört", "名", "x" * 50, "a.b-c"]


def make_decimal(rng: random.Random, precision: int, scale: int) -> TypedValue:
    """Return a decimal number of up to all digits, as text."""
    value = Decimal(rng.choice([1, -1]) * rng.randrange(10 ** rng.randint(1, precision))).scaleb(-scale)
    return TypedValue(str(value), value)


def make_date(rng: random.Random) -> TypedValue:
    """Return a day in the years 1 to 9999."""
    day = date.fromordinal(rng.randint(1, date.max.toordinal()))
    return TypedValue(day.isoformat(), day)


def make_time_of_day(rng: random.Random) -> TypedValue:
    """Return a time with 0 to 6 digits of a fraction."""
    digits = rng.randrange(7)
    text = f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
    fraction = "".join(rng.choices("0123456789", k=digits))
    return TypedValue(f"{text}.{fraction}" if digits else text, f"{text}.{fraction:0<6}")


def make_uuid(rng: random.Random) -> TypedValue:
    """Return a UUID, some in upper case."""
    text = str(UUID(int=rng.getrandbits(128)))
    return TypedValue(rng.choice([text, text.upper()]), text)


def make_bytes(rng: random.Random) -> TypedValue:
    """Return up to 100 bytes in Base64."""
    content = rng.randbytes(rng.randrange(100))
    return TypedValue(base64.b64encode(content).decode(), content)


def make_map(value_type: str) -> MakeValue:
    """Return a maker of maps of up to three values."""

    def make_value(rng: random.Random) -> TypedValue:
        values = {key: MAKERS[value_type](rng) for key in rng.sample(WORDS, rng.randrange(4))}
        return TypedValue(
            {key: value.member for key, value in values.items()},
            {key: value.stored for key, value in values.items()},
        )

    return make_value


def make_struct(rng: random.Random) -> TypedValue:
    """Return a struct of STRUCT_TYPE; its optional members may be absent."""
    members = {"city": "string", "at": "timestamp(iso8601)", "total": "decimal(12, 2)"}
    values = {
        name: MAKERS[text](rng) for name, text in members.items() if name == "city" or rng.random() < 0.5
    }
    days = [make_date(rng) for _ in range(rng.randrange(3))]
    return TypedValue(
        {name: value.member for name, value in values.items()} | {"days": [day.member for day in days]},
        {name: values[name].stored if name in values else None for name in members}
        | {"days": [day.stored for day in days]},
    )


STRUCT_TYPE = "struct<city: string, at?: timestamp(iso8601), total?: decimal(12, 2), days: array<date>>"


def make_array(item_type: str) -> MakeValue:
    """Return a maker of arrays of up to three items."""

    def make_value(rng: random.Random) -> TypedValue:
        items = [MAKERS[item_type](rng) for _ in range(rng.randrange(4))]
        return TypedValue([item.member for item in items], [item.stored for item in items])

    return make_value


MAKERS: dict[str, MakeValue] = {
    "string": make_plain(lambda rng: rng.choice(WORDS)),
    "boolean": make_plain(lambda rng: rng.random() < 0.5),
    "int": make_plain(lambda rng: rng.choice([-(2**31), 2**31 - 1, rng.randrange(100)])),
    "long": make_plain(lambda rng: rng.choice([-(2**63), 2**63 - 1, rng.randrange(100)])),
    "float": make_plain(lambda rng: rng.choice([0.0, -1.5, 2.0**100])),
    "double": make_plain(lambda rng: rng.choice([0.0, rng.uniform(-1e300, 1e300)])),
    "timestamp": make_epoch(1000),
    "timestamp(seconds)": make_epoch(1),
    "timestamp(micros)": make_epoch(1_000_000),
    "timestamp(nanos)": make_epoch(1_000_000_000),
    "timestamp(iso8601)": make_iso_text,
    "decimal(12, 2)": lambda rng: make_decimal(rng, 12, 2),
    "decimal(38, 18)": lambda rng: make_decimal(rng, 38, 18),
    "date": make_date,
    "time": make_time_of_day,
    "uuid": make_uuid,
    "bytes": make_bytes,
    "enum(new, paid, sent_back)": make_plain(lambda rng: rng.choice(["new", "paid", "sent_back"])),
}
ALL_MAKERS: dict[str, MakeValue] = MAKERS | {
    **{f"array<{name}>": make_array(name) for name in MAKERS if name not in ("float", "boolean")},
    **{f"map<string, {name}>": make_map(name) for name in ("string", "int", "uuid", "decimal(12, 2)")},
    STRUCT_TYPE: make_struct,
}
