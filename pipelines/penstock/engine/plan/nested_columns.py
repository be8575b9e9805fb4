"""Members of structs as columns: a definition may name `address.city` wherever it names a field.

Each path that a definition names is a column of the source: steps, keys and aggregates treat it as any other.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from penstock.engine.plan.sources import Column, PlanSource
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.field_types.type_discovery import parse_type


def collect_paths(definition: object) -> frozenset[str]:
    """Return each text of a definition that may be a path: it has a dot."""
    return frozenset(text for text in _iter_texts(definition, set()) if "." in text)


def list_member_columns(columns: Sequence[Column], paths: Collection[str]) -> tuple[Column, ...]:
    """Return a column for each path that leads to a member of a struct, sorted by name."""
    struct_types = {
        column.name: parse_type(column.field_type)
        for column in columns
        if column.field_type is not None and not column.is_member
    }
    members = ((path, _find_member(struct_types, path)) for path in sorted(set(paths)))
    known_names = {column.name for column in columns}
    return tuple(
        Column(path, member.spark_type, field_type=str(member), is_member=True)
        for path, member in members
        if member is not None and path not in known_names
    )


def read_nested_values(source: PlanSource, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the member columns of a record, from the mappings of its structs."""
    return {column.name: _read_path(record, column.name) for column in source.columns if column.is_member}


def _find_member(struct_types: Mapping[str, FieldType], path: str) -> FieldType | None:
    name, *steps = path.split(".")
    member = struct_types.get(name)
    for step in steps:
        member = None if member is None else member.find_part(f".{step}")
    return member


def _read_path(record: Mapping[str, Any], path: str) -> Any:
    value: Any = record
    for step in path.split("."):
        value = None if value is None else value.get(step)
    return value


def _iter_texts(node: object, visited: set[int]) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif id(node) in visited:
        return
    elif is_dataclass(node) and not isinstance(node, type):
        visited.add(id(node))
        for each in fields(node):
            yield from _iter_texts(getattr(node, each.name), visited)
    elif isinstance(node, Mapping):
        yield from _iter_texts((*node.keys(), *node.values()), visited)
    elif isinstance(node, tuple | list | set | frozenset):
        for item in node:
            yield from _iter_texts(item, visited)
