"""Names of the Arrow types of results, as Spark names them."""

import pyarrow as pa

from penstock.engine.definition.sql_arrow_types import SQL_TO_ARROW_TYPES

ARROW_TO_SQL_TYPES = {arrow_type: name for name, arrow_type in SQL_TO_ARROW_TYPES.items()}


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
