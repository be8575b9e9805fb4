"""Refuses columns that do not exist, with the nearest name; members of structs are known by their paths."""

from collections.abc import Iterator, Mapping

from penstock.core.names import find_nearest_name, list_names
from penstock.engine.definition.argument_checks import require_known_name
from penstock.engine.errors import UnknownNameError
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.field_types.type_discovery import parse_spark_type
from penstock.ingestion.errors import ContractError


def require_known_column(
    name: str, columns: Mapping[str, str | None], field: str, problem: str, label: str
) -> None:
    """Refuse a column that does not exist. The error suggests a column, or a member of a struct.

    `columns` are the columns with their Spark types; `label` introduces them.
    """
    if name in columns:
        return
    paths = list(_iter_paths(columns))
    prefix = name.rpartition(".")[0]
    siblings = [path for path in paths if prefix and path.rpartition(".")[0] == prefix]
    if siblings:
        require_known_name(name, siblings, field, problem, f"Fields of {prefix}")
    columns_and_paths = list(dict.fromkeys([*columns, *paths]))
    if "." in name:
        require_known_name(name, columns_and_paths, field, problem, label)
    members = [path for path in paths if path.rpartition(".")[2] == name]
    if members and find_nearest_name(name, columns) is None:
        fix = f"Did you mean {members[0]!r}? {label}: {list_names(name, columns_and_paths)}"
        raise UnknownNameError(field, problem, fix, name=name)
    require_known_name(name, columns, field, problem, label)


def _iter_paths(columns: Mapping[str, str | None]) -> Iterator[str]:
    """Yield the path of each member of a struct, at any depth."""
    for name, spark_type in columns.items():
        if spark_type is not None and spark_type.upper().startswith("STRUCT") and "." not in name:
            try:
                yield from _iter_member_paths(name, parse_spark_type(spark_type))
            except ContractError:
                continue  # a type that contracts do not have


def _iter_member_paths(path: str, field_type: FieldType) -> Iterator[str]:
    for member in field_type.member_names:
        member_path = f"{path}.{member}"
        yield member_path
        part = field_type.find_part(f".{member}")
        if part is not None:
            yield from _iter_member_paths(member_path, part)
