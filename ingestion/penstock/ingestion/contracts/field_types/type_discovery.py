"""Finds the types by their keywords, and parses types from contracts, schemas and Spark columns."""

import re
from collections.abc import Callable, Mapping
from inspect import isabstract
from typing import Any

from penstock.core.errors import UnknownKindError
from penstock.core.kind_registry import KindRegistry
from penstock.core.names import suggest_name
from penstock.ingestion.contracts.field_types.field_type import FieldType, OdcsProperty
from penstock.ingestion.errors import ContractError

_TYPE_PATTERN = re.compile(r"([\w:.]+)\s*(?:\((.*)\)|<(.*)>)?", re.DOTALL)


def _is_field_type(member: Any) -> bool:
    return isinstance(member, type) and issubclass(member, FieldType) and not isabstract(member)


FIELD_TYPES: KindRegistry[type[FieldType]] = KindRegistry(
    noun="type",
    packages=("penstock.ingestion.contracts.field_types",),
    entry_point_group="penstock.field_types",
    name_kind=lambda member: (member.keyword or None) if _is_field_type(member) else None,
    is_kind=_is_field_type,
    how_to_define="Derive the class from FieldType, and define `keyword` and its methods.",
)


def parse_type(text: str) -> FieldType:
    """Parse a type as the contract writes it: `long`, `array<string>`; raise ContractError if it is none."""
    match = _TYPE_PATTERN.fullmatch(text.strip())
    if match is None:
        raise ContractError(f"'{text}' is not a type. Types: {describe_types()}.")
    keyword, in_parentheses, in_angles = match.groups()
    try:
        kind = FIELD_TYPES.find_kind(keyword)
    except UnknownKindError:
        suggestion = suggest_name(keyword, FIELD_TYPES.kinds_by_name)
        raise ContractError(f"'{text}' is not a type.{suggestion} Types: {describe_types()}.") from None
    return kind.from_arguments(in_parentheses if in_angles is None else in_angles, parse_type)


def parse_spark_type(text: str) -> FieldType:
    """Return the type for a Spark type. BIGINT becomes `long`, although it may hold a timestamp."""
    parsed = _find_first(lambda kind: kind.from_spark_type(text.strip(), parse_spark_type))
    if parsed is None:
        raise ContractError(f"Spark type '{text}' has no contract type. Types: {describe_types()}.")
    return parsed


def parse_avro_type(avro_type: Any) -> FieldType:
    """Return the type for a type of an Avro schema. As in Avro, an unknown logical type is ignored."""
    parsed = _find_first(lambda kind: kind.from_avro_type(avro_type, parse_avro_type))
    if parsed is not None:
        return parsed
    if isinstance(avro_type, Mapping) and isinstance(avro_type.get("type"), str | Mapping):
        return parse_avro_type(avro_type["type"])
    raise ContractError(f"Avro type {avro_type!r} has no contract type. Types: {describe_types()}.")


def parse_json_schema(schema: Mapping[str, Any]) -> FieldType:
    """Return the type for a JSON Schema; an unknown format is ignored. Null is left out of its types."""
    names = schema.get("type")
    name = next((each for each in names if each != "null"), None) if isinstance(names, list) else names
    schema = {**schema, "type": name}
    parsed = _find_first(lambda kind: kind.from_json_schema(schema, parse_json_schema)) or _find_first(
        lambda kind: kind.from_plain_json_type(str(name))
    )
    if parsed is None:
        raise ContractError(f"JSON type {name!r} has no contract type. Types: {describe_types()}.")
    return parsed


def parse_odcs_type(keys: OdcsProperty) -> FieldType:
    """Return the type for a property of the Open Data Contract Standard.

    A type that this program wrote comes first, then a physical type of Spark, then the logical type.
    """
    parsed = (
        _parse_own_physical_type(keys)
        or _parse_spark_physical_type(keys)
        or _find_first(lambda kind: kind.from_odcs_type(keys, parse_odcs_type))
    )
    if parsed is None:
        described = " ".join(str(keys[key]) for key in ("logicalType", "physicalType") if key in keys)
        raise ContractError(f"Type '{described}' has no contract type. Types: {describe_types()}.")
    return parsed


def _parse_own_physical_type(keys: OdcsProperty) -> FieldType | None:
    text = str(keys.get("physicalType", ""))
    # A document of others must not import a module, which `module:name` does.
    if ":" in text or text.partition("(")[0] not in FIELD_TYPES.kinds_by_name:
        return None
    try:
        parsed = parse_type(text)
    except ContractError:
        return None
    names = ("logicalType", "physicalType")
    return parsed if all(parsed.odcs_type.get(name) == keys.get(name) for name in names) else None


def _parse_spark_physical_type(keys: OdcsProperty) -> FieldType | None:
    """Return the type for a physical type in SQL that is more exact than the logical one."""
    is_exact = {"enum", "items", "map", "properties"} & keys.keys() or keys.get("logicalTypeOptions")
    if is_exact:
        return None
    text = re.sub(r"(?i)^num(eric|ber)\b", "decimal", str(keys.get("physicalType", "")))
    try:
        parsed = parse_spark_type(text)
    except ContractError:
        return None
    return (
        parsed
        if keys.get("logicalType", parsed.odcs_type["logicalType"]) == parsed.odcs_type["logicalType"]
        else None
    )


def describe_types() -> str:
    """Return how every type is written, for messages."""
    return ", ".join(kind.syntax or name for name, kind in FIELD_TYPES.kinds_by_name.items())


def _find_first(parse: Callable[[type[FieldType]], FieldType | None]) -> FieldType | None:
    return next(
        (parsed for kind in FIELD_TYPES.kinds_by_name.values() if (parsed := parse(kind)) is not None), None
    )
