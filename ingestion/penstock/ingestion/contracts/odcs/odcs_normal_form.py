"""Rewrites a document of others in the words that an export uses, where the meaning is the same."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from penstock.core.names import suggest_name
from penstock.ingestion.contracts.odcs.odcs_durations import normalize_duration
from penstock.ingestion.contracts.odcs.odcs_export import (
    API_VERSION,
    FUTURE_SKEW,
    LATENESS,
    OWNER_ROLE,
    PERSONAL,
    RETENTION,
)
from penstock.ingestion.errors import ContractError

_LISTS = ("schema", "properties", "enum", "slaProperties", "customProperties", "members", "servers")
_MAPPINGS = ("items", "map", "key", "value", "logicalTypeOptions")
_PERSONAL_WORDS = ("personal", "personal data", "pii", "personally identifiable information")


def normalize_odcs(document: object, object_name: str | None) -> dict[str, Any]:
    """Return a document with one object, in the words of an export; raise ContractError if it is no ODCS 3."""
    if not isinstance(document, Mapping) or document.get("kind") != "DataContract":
        raise ContractError(
            "This is no document of the Open Data Contract Standard: it needs 'kind: DataContract'."
        )
    version = str(document.get("apiVersion", ""))
    if not version.startswith("v3."):
        raise ContractError(
            f"apiVersion {version!r} cannot be imported. Convert the document to {API_VERSION}."
        )
    normalized = deepcopy(dict(document))
    normalized["apiVersion"] = API_VERSION
    if isinstance(normalized.get("team"), list):
        normalized["team"] = {"members": normalized["team"]}
    _check_shape(normalized, "")
    for member in (normalized.get("team") or {}).get("members") or []:
        if str(member.get("role", "")).lower() == OWNER_ROLE:
            member["role"] = OWNER_ROLE
    normalized["slaProperties"] = [
        normalize_duration(level) if level.get("property") in (RETENTION, LATENESS, FUTURE_SKEW) else level
        for level in normalized.get("slaProperties") or []
    ]
    _move_first(normalized, object_name)
    topic = normalized["schema"][0]
    description = normalized.get("description") or {}
    if not topic.get("description") and isinstance(description, dict) and "purpose" in description:
        topic["description"] = description.pop("purpose")
    properties = topic.get("properties") or []
    _normalize_properties(properties)
    _normalize_id(properties)
    return normalized


def _check_shape(node: Any, path: str) -> None:
    """Raise ContractError where a list or a mapping of the standard is something else."""
    if isinstance(node, Mapping):
        for key, value in node.items():
            key_path = f"{path}.{key}".lstrip(".")
            if value is None or (key == "value" and not path.endswith("map")):
                continue
            is_wrong_list = key in _LISTS and not (
                isinstance(value, list) and all(isinstance(each, Mapping) for each in value)
            )
            if is_wrong_list or (key in _MAPPINGS and not isinstance(value, Mapping)):
                expected = "a list of mappings" if is_wrong_list else "a mapping"
                raise ContractError(f"{key_path} must be {expected}, but is {value!r:.60}.")
            if key in _LISTS or isinstance(value, Mapping):
                _check_shape(value, key_path)
    elif isinstance(node, list):
        for number, each in enumerate(node, start=1):
            _check_shape(each, f"{path}.{number}")


def _move_first(document: dict[str, Any], object_name: str | None) -> None:
    """Put the object to import in front of the others."""
    objects = document.get("schema") or []
    names = [str(each.get("name")) for each in objects]
    if not objects:
        raise ContractError("The document has no schema. Add the object that a record of the topic is.")
    if object_name is None and len(objects) > 1:
        raise ContractError(
            f"The document has {len(objects)} objects: {', '.join(names)}. Name one of them with --object."
        )
    if object_name is not None and object_name not in names:
        raise ContractError(
            f"The document has no object '{object_name}'.{suggest_name(object_name, names)} "
            f"Objects: {', '.join(names)}."
        )
    chosen = 0 if object_name is None else names.index(object_name)
    document["schema"] = [objects[chosen], *objects[:chosen], *objects[chosen + 1 :]]


def _normalize_properties(properties: list[dict[str, Any]]) -> None:
    for node in properties:
        _normalize_property(node)


def _normalize_property(node: dict[str, Any]) -> None:
    if str(node.get("classification", "")).lower() in _PERSONAL_WORDS:
        node["classification"] = PERSONAL
    _normalize_properties(node.get("properties") or [])
    if node.get("items"):
        _normalize_property(node["items"])
    if (node.get("map") or {}).get("value"):
        _normalize_property(node["map"]["value"])


def _normalize_id(properties: list[dict[str, Any]]) -> None:
    """Name the only unique property as the primary key, if there is no other."""
    unique = [node for node in properties if node.get("unique") is True]
    if len(unique) == 1 and not any(node.get("primaryKey") for node in properties if node is not unique[0]):
        del unique[0]["unique"]
        unique[0] |= {"primaryKey": True, "primaryKeyPosition": 1}
