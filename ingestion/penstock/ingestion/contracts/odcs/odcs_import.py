"""Makes a contract from a document of the Open Data Contract Standard, and lists what it loses."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from penstock.ingestion.contracts.contract_parser import CONTRACT_KEYS, parse_contract
from penstock.ingestion.contracts.odcs.odcs_differences import ImportNote, find_losses
from penstock.ingestion.contracts.odcs.odcs_durations import join_duration
from penstock.ingestion.contracts.odcs.odcs_export import (
    DELETES,
    ENVELOPE,
    ENVIRONMENTS,
    EVENT_TIME,
    FUTURE_SKEW,
    LATENESS,
    LAYOUT,
    OPTIONS,
    OWNER_ROLE,
    RETENTION,
    TEAM_PREFIX,
    export_odcs,
)
from penstock.ingestion.contracts.odcs.odcs_fields import OdcsFieldImporter, find_custom
from penstock.ingestion.contracts.odcs.odcs_normal_form import normalize_odcs
from penstock.ingestion.errors import ContractError


@dataclass(frozen=True, slots=True)
class OdcsImport:
    """A contract as its file declares it, and what the document has beyond it."""

    contract_document: dict[str, Any]
    notes: tuple[ImportNote, ...]


def import_odcs(document: object, object_name: str | None = None) -> OdcsImport:
    """Return the contract of a document. Of several objects, name the one to import.

    The contract is exported again: each value of the document that the export lacks is in the notes, so that
    nothing is dropped silently. Raises ContractError if no contract can be made.
    """
    normalized = normalize_odcs(document, object_name)
    topic = normalized["schema"][0]
    fields = OdcsFieldImporter()
    builder = _ContractBuilder(
        {
            "topic": str(topic.get("physicalName") or topic.get("name")),
            "doc": topic.get("description") or "",
            "fields": fields.import_properties(
                topic.get("properties") or [], f"schema.{topic.get('physicalName') or topic.get('name')}"
            ),
        },
        fields.reasons,
    )
    builder.add_roles(topic)
    builder.add_operations(normalized)
    contract_document = {key: builder.document[key] for key in CONTRACT_KEYS if key in builder.document}
    exported = export_odcs(parse_contract(contract_document))
    losses = find_losses(normalized, exported, builder.reasons)
    return OdcsImport(contract_document, (*losses, *fields.assumptions))


class _ContractBuilder:
    """A contract document that grows key by key. A key that makes it invalid is left out, with the reason."""

    def __init__(self, document: dict[str, Any], reasons: dict[str, str]) -> None:
        self.reasons = reasons
        self.document = document
        if not document["fields"]:
            found = "; ".join(f"{path}: {reason}" for path, reason in reasons.items())
            raise ContractError(f"No property can be imported as a field. {found or 'The object has none.'}")
        parse_contract(document)

    def add_roles(self, topic: Mapping[str, Any]) -> None:
        """Add key, id and event time."""
        path = f"schema.{topic.get('physicalName') or topic.get('name')}"
        for role, mark in (("key", "partitioned"), ("id", "primaryKey")):
            marked = [node for node in topic.get("properties") or [] if node.get(mark)]
            if len(marked) == 1:
                name = marked[0].get("physicalName") or marked[0].get("name")
                self._add(f"{path}.properties.{name}.{mark}", role, name)
        if (event_time := find_custom(topic, EVENT_TIME)) is not None:
            self._add(f"{path}.customProperties.{EVENT_TIME}", "event_time", event_time)

    def add_operations(self, document: Mapping[str, Any]) -> None:
        """Add owner, encoding, service levels, layouts and the options of a contract."""
        if (owner := _find_owner(document.get("team") or {})) is not None:
            self._add("team", "owner", owner)
        servers = [each for each in document.get("servers") or [] if each.get("type") == "kafka"]
        if servers and servers[0].get("format"):
            path = f"servers.{servers[0].get('server')}.format"
            # An encoding with events of changed rows is valid only together with what is said about them.
            found = {name: find_custom(document, name) for name in (DELETES, ENVELOPE)}
            related = {name: value for name, value in found.items() if value is not None}
            self._add(path, "encoding", servers[0]["format"], related)
        for name, key in OPTIONS.items():
            if (value := find_custom(document, name)) is not None:
                self._add(f"customProperties.{name}", key, value)
        levels = {level.get("property"): join_duration(level) for level in document["slaProperties"]}
        for name, key in ((LATENESS, "max_out_of_orderness"), (FUTURE_SKEW, "max_future_skew")):
            if name in levels:
                self._add(f"slaProperties.{name}.value", key, levels[name])
        if (layout := find_custom(document, LAYOUT)) is not None:
            self._add(f"customProperties.{LAYOUT}", LAYOUT, layout)
        if RETENTION in levels:
            layout = {**self.document.get(LAYOUT, {}), RETENTION: levels[RETENTION]}
            self._add(f"slaProperties.{RETENTION}.value", LAYOUT, layout)
        if (environments := find_custom(document, ENVIRONMENTS)) is not None:
            self._add(f"customProperties.{ENVIRONMENTS}", ENVIRONMENTS, environments)

    def _add(
        self, path: str, key: str, value: Any, related: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        candidate = {**self.document, **related, key: value}
        try:
            parse_contract(candidate)
        except ContractError as error:
            self.reasons[path] = " ".join(str(error).split())
        else:
            self.document = candidate


def _find_owner(team: Mapping[str, Any]) -> str | None:
    """Return the team, or the member that owns the contract."""
    if team.get("name"):
        return f"{TEAM_PREFIX}{team['name']}"
    owners = [member for member in team.get("members") or [] if member.get("role") == OWNER_ROLE]
    return str(owners[0].get("username")) if len(owners) == 1 else None
