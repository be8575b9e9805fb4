"""Writes a contract as a document of the Open Data Contract Standard."""

import hashlib
import json
from typing import Any

from penstock.ingestion.contracts.contract import Contract, ContractField, TopicLayout
from penstock.ingestion.contracts.odcs.odcs_durations import join_duration, split_duration

API_VERSION = "v3.2.0"
PERSONAL = "personal"
OWNER_ROLE = "owner"
TEAM_PREFIX = "team:"
RETENTION, LATENESS, FUTURE_SKEW = "retention", "maxOutOfOrderness", "maxFutureSkew"
EVENT_TIME = "eventTime"
LAYOUT, ENVIRONMENTS = "layout", "environments"
DELETES, ENVELOPE = "deletes", "envelope"
OPTIONS = {
    "compatibility": "compatibility",
    "unknownFields": "unknown_fields",
    "maxBytes": "max_bytes",
    DELETES: "deletes",
}
"""Keys of a contract for which the standard has no word, by the names of their custom properties."""
_VERSION_DIGITS = 12


def export_odcs(contract: Contract, bootstrap_servers: str | None = None) -> dict[str, Any]:
    """Return the document of a contract. Its version is a digest, which changes exactly if the contract does.

    The standard requires the address of the broker; without it, the document is only good for comparison.
    """
    server = {"server": "kafka", "type": "kafka", "format": contract.encoding}
    document: dict[str, Any] = {
        "id": contract.topic,
        "name": contract.topic,
        "status": "active",
        "schema": [_export_topic(contract)],
        "slaProperties": _export_service_levels(contract),
        **_export_owner(contract.owner),
        "customProperties": _export_options(contract),
    }
    digest = hashlib.sha256(json.dumps([document, server], sort_keys=True).encode()).hexdigest()
    head = {"kind": "DataContract", "apiVersion": API_VERSION, "version": digest[:_VERSION_DIGITS]}
    address = {} if bootstrap_servers is None else {"host": bootstrap_servers}
    return {**head, **document, "servers": [{**server, **address}]}


def export_field(field: ContractField) -> dict[str, Any]:
    """Return the property of a field, with the descriptions of declared members."""
    declared = field.parsed_type.odcs_type
    keys: dict[str, Any] = {"name": field.name, **declared, "required": field.required}
    if field.members:
        keys |= _describe_members(declared, {member.name: member for member in field.members})
    keys["description"] = field.doc
    if field.personal:
        keys["classification"] = PERSONAL
    return keys


def _describe_members(keys: Any, members: dict[str, ContractField]) -> dict[str, Any]:
    """Return the keys of a type with the members of the struct that it is or contains."""
    if "properties" in keys:
        return {**keys, "properties": [export_field(members[each["name"]]) for each in keys["properties"]]}
    if "items" in keys:
        return {**keys, "items": _describe_members(keys["items"], members)}
    return {**keys, "map": {**keys["map"], "value": _describe_members(keys["map"]["value"], members)}}


def _export_topic(contract: Contract) -> dict[str, Any]:
    topic: dict[str, Any] = {
        "name": contract.topic,
        "physicalName": contract.topic,
        "physicalType": "topic",
        "logicalType": "object",
        "description": contract.doc,
        "properties": [_export_property(contract, field) for field in contract.fields],
    }
    if contract.event_time is not None:
        topic["customProperties"] = [_custom(EVENT_TIME, contract.event_time)]
    return topic


def _export_property(contract: Contract, field: ContractField) -> dict[str, Any]:
    keys = export_field(field)
    if field.name == contract.id:
        keys |= {"primaryKey": True, "primaryKeyPosition": 1}
    if field.name == contract.key:
        keys |= {"partitioned": True, "partitionKeyPosition": 1}
    return keys


def _export_service_levels(contract: Contract) -> list[dict[str, Any]]:
    levels = [
        {"property": RETENTION, **split_duration(contract.layout.retention_ms)},
        {"property": LATENESS, **split_duration(contract.max_out_of_orderness_ms)},
    ]
    if (skew := contract.max_future_skew) is not None:
        amount = {"value": skew} if isinstance(skew, str) else split_duration(skew)
        levels.append({"property": FUTURE_SKEW, **amount})
    return levels


def _export_owner(owner: str | None) -> dict[str, Any]:
    if owner is None:
        return {}
    if owner.startswith(TEAM_PREFIX):
        return {"team": {"name": owner.removeprefix(TEAM_PREFIX)}}
    return {"team": {"members": [{"username": owner, "role": OWNER_ROLE}]}}


def _export_options(contract: Contract) -> list[dict[str, Any]]:
    options = [
        _custom(name, value)
        for name, attribute in OPTIONS.items()
        if (value := getattr(contract, attribute)) is not None
    ]
    if contract.envelope:
        options.append(_custom(ENVELOPE, dict(contract.envelope)))
    options.append(_custom(LAYOUT, _export_layout(contract.layout)))
    if contract.environments:
        layouts = {
            name: {RETENTION: join_duration(split_duration(layout.retention_ms)), **_export_layout(layout)}
            for name, layout in contract.environments
        }
        options.append(_custom(ENVIRONMENTS, layouts))
    return options


def _export_layout(layout: TopicLayout) -> dict[str, Any]:
    settings = {"settings": dict(layout.settings)} if layout.settings else {}
    return {
        "partitions": layout.partitions,
        "replicas": layout.replicas,
        "compacted": layout.compacted,
        **settings,
    }


def _custom(name: str, value: Any) -> dict[str, Any]:
    return {"property": name, "value": value, "vendor": "penstock"}
