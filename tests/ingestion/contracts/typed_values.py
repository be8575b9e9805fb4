"""Random values of each type: as decoded by Python, and as stored in a column of Spark."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, NamedTuple

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
}


def make_array(item_type: str) -> MakeValue:
    """Return a maker of arrays of up to three items."""

    def make_value(rng: random.Random) -> TypedValue:
        items = [MAKERS[item_type](rng) for _ in range(rng.randrange(4))]
        return TypedValue([item.member for item in items], [item.stored for item in items])

    return make_value


ALL_MAKERS: dict[str, MakeValue] = MAKERS | {f"array<{name}>": make_array(name) for name in list(MAKERS)}
