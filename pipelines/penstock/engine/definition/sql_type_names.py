"""Names of Spark SQL types, and the kinds of types that operations refuse."""

NON_NUMBER_TYPES = ("STRING", "VARCHAR", "CHAR", "BOOLEAN", "BINARY", "ARRAY", "MAP", "STRUCT")
NON_ADDITIVE_TYPES = (*NON_NUMBER_TYPES, "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")


def base_type(type_name: str) -> str:
    """Return a type without its parameters: `DECIMAL(10, 2)` gives DECIMAL."""
    return type_name.upper().partition("<")[0].partition("(")[0].strip()
