"""Conversion between the SQL types that contracts and plans name and the Arrow types of the engine."""

import re

import pyarrow as pa

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
ARROW_TO_SQL_TYPES = {arrow_type: name for name, arrow_type in SQL_TO_ARROW_TYPES.items()}
_DECIMAL_PATTERN = re.compile(r"decimal\((\d+), ?(\d+)\)")


def to_arrow_type(sql_type: str) -> pa.DataType | None:
    """Return the Arrow type of a SQL type; None for one that is not known here."""
    name = sql_type.strip().lower()
    if name.startswith("array<") and name.endswith(">"):
        item_type = to_arrow_type(name[6:-1])
        return None if item_type is None else pa.list_(item_type)
    if decimal_match := _DECIMAL_PATTERN.fullmatch(name):
        return pa.decimal128(int(decimal_match[1]), int(decimal_match[2]))
    return SQL_TO_ARROW_TYPES.get(name)


def to_sql_type(arrow_type: pa.DataType) -> str:
    """Return the SQL type of an Arrow type, as Spark names it."""
    if pa.types.is_list(arrow_type) or pa.types.is_large_list(arrow_type):
        return f"array<{to_sql_type(arrow_type.value_type)}>"
    if pa.types.is_struct(arrow_type):
        fields = ",".join(f"{field.name}:{to_sql_type(field.type)}" for field in arrow_type)
        return f"struct<{fields}>"
    if pa.types.is_map(arrow_type):
        return f"map<{to_sql_type(arrow_type.key_type)},{to_sql_type(arrow_type.item_type)}>"
    if pa.types.is_decimal(arrow_type):
        return f"decimal({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_timestamp(arrow_type):
        return "timestamp" if arrow_type.tz else "timestamp_ntz"
    return ARROW_TO_SQL_TYPES.get(arrow_type, str(arrow_type))
