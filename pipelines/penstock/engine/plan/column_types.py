"""Spark SQL types of declared columns, and the operations that each type supports."""

from collections.abc import Iterable, Mapping

from penstock.core.names import suggest_name
from penstock.engine.definition.argument_checks import require
from penstock.engine.definition.predicates import Predicate, iter_comparisons
from penstock.engine.definition.sql_arrow_types import find_arrow_type
from penstock.engine.definition.sql_type_names import NON_ADDITIVE_TYPES, base_type
from penstock.engine.plan.sources import Column

DECLARABLE_TYPES = (
    "STRING", "BOOLEAN", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(12, 2)", "DATE", "BINARY",
)  # fmt: skip
"""The types that a declared column may have, with any digits of a decimal, and in arrays."""

_NUMBER_TYPES = ("TINYINT", "SMALLINT", "INT", "INTEGER", "BIGINT", "LONG", "FLOAT", "DOUBLE", "DECIMAL")
COMPARABLE_CLASSES: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys(_NUMBER_TYPES, (int, float)),
    **dict.fromkeys(("STRING", "VARCHAR", "CHAR"), (str,)),
    "BOOLEAN": (bool,),
}
"""The Python types of constants for each column type. For unlisted types, Spark decides."""

NON_KEY_TYPES = ("ARRAY", "MAP", "STRUCT")
SCALAR_KEY_HINT = (
    "Group by a scalar field: flat_map can make one row per value, map can convert the value to text"
)


def check_column_types(columns: Iterable[Column], field: str) -> None:
    """Refuse a column type that is not declarable."""
    for column in columns:
        suggestion = suggest_name(column.type, DECLARABLE_TYPES).lstrip()
        fix = f"{suggestion} Write one of: {', '.join(DECLARABLE_TYPES)}, or ARRAY<one of them>".lstrip()
        problem = f"{column.type!r} is not a type"
        require(is_declarable_type(column.type), f"{field}.{column.name}", problem, fix)


def is_declarable_type(type_name: str) -> bool:
    """Return whether a declared column may have this type."""
    type_name = type_name.strip().upper()
    if type_name.startswith("ARRAY<") and type_name.endswith(">"):
        return is_declarable_type(type_name[6:-1])
    if base_type(type_name) == "DECIMAL":
        return find_arrow_type(type_name) is not None
    return type_name in DECLARABLE_TYPES


def check_numeric_field(field: str, column_types: Mapping[str, str | None], location: str) -> None:
    """Refuse a window that compares a field that is known not to be a number."""
    field_type = column_types.get(field) or ""
    fix = "Name a numeric field"
    problem = f"{field!r} is {field_type}, which is not numeric"
    require(base_type(field_type) not in NON_ADDITIVE_TYPES, location, problem, fix)


def check_key_types(names: Iterable[str], column_types: Mapping[str, str | None]) -> None:
    """Refuse to group by a field that is known to be an array, map or struct."""
    for name in names:
        field_type = column_types.get(name) or ""
        require(
            base_type(field_type) not in NON_KEY_TYPES, "key", f"{name!r} is {field_type}", SCALAR_KEY_HINT
        )


def check_condition_types(
    predicate: Predicate, column_types: Mapping[str, str | None], location: str
) -> None:
    """Refuse to compare a field with a constant of another type. Spark would fail at the first record."""
    for field, constant in iter_comparisons(predicate):
        field_base_type = base_type(column_types.get(field) or "")
        allowed = COMPARABLE_CLASSES.get(field_base_type, (str, int, float, bool))
        is_comparable = isinstance(constant, allowed) and (bool in allowed or not isinstance(constant, bool))
        problem = f"{field!r} is {column_types.get(field)}, and {constant!r} is not"
        require(
            is_comparable,
            location,
            problem,
            "Compare it with a constant of its type: 'text' in quotes, numbers without",
        )
