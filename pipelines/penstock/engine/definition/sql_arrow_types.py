"""Conversion of the SQL types that contracts, plans and user functions name to the Arrow types of the engine."""

import re

import pyarrow as pa

from penstock.ingestion.contracts.field_types.type_text import split_outside_brackets

SQL_TO_ARROW_TYPES = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
MAX_DECIMAL_DIGITS = 38
_DECIMAL_PATTERN = re.compile(r"decimal\s*\(\s*(\d+)\s*,\s*(\d+)\s*\)", re.IGNORECASE)
_NESTED_PATTERN = re.compile(r"(array|map|struct)\s*<(.*)>", re.IGNORECASE | re.DOTALL)


def find_arrow_type(sql_type: str) -> pa.DataType | None:
    """Return the Arrow type of a SQL type; None for one that is not known here.

    >>> find_arrow_type("ARRAY<DECIMAL(12, 2)>")
    ListType(list<item: decimal128(12, 2)>)
    """
    text = sql_type.strip()
    if nested := _NESTED_PATTERN.fullmatch(text):
        return _find_nested_type(nested[1].lower(), nested[2])
    if decimal := _DECIMAL_PATTERN.fullmatch(text):
        precision, scale = int(decimal[1]), int(decimal[2])
        is_valid = 1 <= precision <= MAX_DECIMAL_DIGITS and scale <= precision
        return pa.decimal128(precision, scale) if is_valid else None
    return SQL_TO_ARROW_TYPES.get(text.lower())


def _find_nested_type(keyword: str, arguments: str) -> pa.DataType | None:
    parts = split_outside_brackets(arguments, ",")
    pairs = [split_outside_brackets(part, ":", limit=1) for part in parts]
    inner_types = [find_arrow_type(pair[-1]) for pair in pairs]
    match keyword, inner_types:
        case "array", [pa.DataType() as item_type]:
            return pa.list_(item_type)
        case "map", [pa.DataType() as key_type, pa.DataType() as value_type]:
            return pa.map_(key_type, value_type)
        case "struct", _ if None not in inner_types and all(len(pair) == 2 for pair in pairs):
            names = [pair[0].strip("`") for pair in pairs]
            return pa.struct([pa.field(*field) for field in zip(names, inner_types, strict=True)])
    return None
