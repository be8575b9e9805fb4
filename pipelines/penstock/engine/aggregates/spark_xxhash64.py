"""Spark's `xxhash64` in Python, so that equal values have equal hashes on both sides."""

import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import isnan, nan
from typing import Any

import pyarrow as pa
import xxhash

XXHASH_SEED = 42
MAX_LONG_DIGITS = 18
"""Decimals with more digits do not fit a long, and are hashed as bytes."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


def hash_like_spark(column: pa.ChunkedArray) -> list[int | None]:
    """Return the hash of each value; None for null, where Spark returns the seed."""
    encode = _select_encoder(column.type)
    return [None if value is None else _hash_to_signed(encode(value)) for value in column.to_pylist()]


def _hash_to_signed(encoded: bytes) -> int:
    digest = xxhash.xxh64_intdigest(encoded, XXHASH_SEED)
    return digest - (1 << 64) if digest >> 63 else digest


def _select_encoder(value_type: pa.DataType) -> Callable[[Any], bytes]:
    """Return how Spark encodes a value of this type for hashing."""
    if (
        pa.types.is_boolean(value_type)
        or pa.types.is_int8(value_type)
        or pa.types.is_int16(value_type)
        or pa.types.is_int32(value_type)
    ):
        return struct.Struct("<i").pack
    if pa.types.is_integer(value_type):
        return struct.Struct("<q").pack
    if pa.types.is_float32(value_type):
        return lambda value: struct.pack("<f", _normalize_float(value))
    if pa.types.is_floating(value_type):
        return lambda value: struct.pack("<d", _normalize_float(value))
    if pa.types.is_date32(value_type):
        return lambda value: struct.pack("<i", (value - date(1970, 1, 1)).days)
    if pa.types.is_timestamp(value_type):
        return lambda value: struct.pack("<q", (value.replace(tzinfo=UTC) - EPOCH) // MICROSECOND)
    if pa.types.is_decimal(value_type):
        return lambda value: _encode_decimal(value, value_type)
    return lambda value: value.encode() if isinstance(value, str) else bytes(value)


def _normalize_float(value: float) -> float:
    """Map -0.0 to 0.0 and every NaN to one NaN."""
    return nan if isnan(value) else value + 0.0


def _encode_decimal(value: Decimal, decimal_type: pa.DataType) -> bytes:
    unscaled = int(value.scaleb(decimal_type.scale))
    if decimal_type.precision <= MAX_LONG_DIGITS:
        return struct.pack("<q", unscaled)
    return unscaled.to_bytes(
        (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1, "big", signed=True
    )
