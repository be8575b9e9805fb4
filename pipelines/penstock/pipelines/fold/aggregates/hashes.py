"""The hash that Spark's `xxhash64` makes of a value, made here: equal values are equal, wherever they came by."""

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isnan, nan
from typing import Any

import pyarrow as pa
import xxhash

SEED = 42
LONG_DIGITS = 18
"""Decimals of more digits than fit a long are hashed as bytes."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def spark_hashes(column: pa.ChunkedArray) -> list[int | None]:
    """The hash of each value; null has none, where Spark would say the seed."""
    encode = _encoder(column.type)
    return [None if value is None else _signed(encode(value)) for value in column.to_pylist()]


def _signed(encoded: bytes) -> int:
    found = xxhash.xxh64_intdigest(encoded, SEED)
    return found - (1 << 64) if found >> 63 else found


def _encoder(kind: pa.DataType) -> Callable[[Any], bytes]:
    """How Spark lays a value of this type out before it hashes it."""
    if (
        pa.types.is_boolean(kind)
        or pa.types.is_int8(kind)
        or pa.types.is_int16(kind)
        or pa.types.is_int32(kind)
    ):
        return struct.Struct("<i").pack
    if pa.types.is_integer(kind):
        return struct.Struct("<q").pack
    if pa.types.is_float32(kind):
        return lambda value: struct.pack("<f", _plain(value))
    if pa.types.is_floating(kind):
        return lambda value: struct.pack("<d", _plain(value))
    if pa.types.is_date32(kind):
        return lambda value: struct.pack("<i", (value - date(1970, 1, 1)).days)
    if pa.types.is_timestamp(kind):
        return lambda value: struct.pack("<q", (value.replace(tzinfo=UTC) - EPOCH) // MICROSECOND)
    if pa.types.is_decimal(kind):
        return lambda value: _decimal(value, kind)
    return lambda value: value.encode() if isinstance(value, str) else bytes(value)


def _plain(value: float) -> float:
    """One zero and one NaN stand for all."""
    return nan if isnan(value) else value + 0.0


def _decimal(value: Decimal, kind: pa.DataType) -> bytes:
    unscaled = int(value.scaleb(kind.scale))
    if kind.precision <= LONG_DIGITS:
        return struct.pack("<q", unscaled)
    return unscaled.to_bytes(
        (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True
    )
