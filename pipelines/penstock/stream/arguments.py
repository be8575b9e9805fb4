"""Parsing of arguments: names, columns with types, and options that may be set once."""

from collections.abc import Mapping, Sequence

from penstock.engine.definition.argument_checks import require, require_type
from penstock.engine.plan.sources import Column


def parse_columns(column_types: Mapping[str, str], field: str) -> tuple[Column, ...]:
    """Return the columns of a mapping from name to Spark SQL type."""
    fix = "Write names and types, as in {'word': 'STRING'}"
    require(not isinstance(column_types, str), field, f"{column_types!r} is one text", fix)
    require_type(column_types, Mapping, field, fix)
    for pair in column_types.items():
        require(all(isinstance(text, str) for text in pair), f"{field}.{pair[0]}", repr(pair[1]), fix)
    return tuple(Column(name, kind) for name, kind in column_types.items())


def parse_join_columns(take: Mapping[str, str] | Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the columns of a join as pairs of name and source field."""
    if isinstance(take, Mapping):
        parse_names([*take.keys(), *take.values()], "join.take")
        return tuple(take.items())
    return tuple((name, name) for name in parse_names(take, "join.take"))


def parse_names(names: str | Sequence[str], field: str) -> tuple[str, ...]:
    """Return one name or several names as a tuple."""
    name_list: object = [names] if isinstance(names, str) else names
    is_name_list = isinstance(name_list, list | tuple) and all(isinstance(name, str) for name in name_list)
    require(is_name_list, field, repr(names), "Write a name, or a list of names")
    return tuple(name_list) if isinstance(name_list, list | tuple) else ()


def require_unset(current_value: object, field: str) -> None:
    """Refuse to set an option twice."""
    require(current_value is None, field, "set twice", "Remove one of them")
