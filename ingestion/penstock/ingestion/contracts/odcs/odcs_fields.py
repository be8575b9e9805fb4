"""Makes fields of a contract from properties of the standard."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.ingestion.contracts.contract_parser import parse_contract
from penstock.ingestion.contracts.field_types.field_type import FieldType
from penstock.ingestion.contracts.field_types.type_discovery import parse_odcs_type
from penstock.ingestion.contracts.odcs.odcs_differences import ImportNote, label_node
from penstock.ingestion.contracts.odcs.odcs_export import PERSONAL
from penstock.ingestion.errors import ContractError

Node = dict[str, Any]


class OdcsFieldImporter:
    """Makes fields, as a contract file declares them. A property that is no field is left out, with its reason."""

    def __init__(self) -> None:
        self.reasons: dict[str, str] = {}
        self.assumptions: list[ImportNote] = []

    def import_properties(self, nodes: Sequence[Node], path: str) -> list[Node]:
        """Return the fields of the properties that can be imported."""
        return [field for _, field in self._import_all(nodes, path)]

    def _import_all(self, nodes: Sequence[Node], path: str) -> list[tuple[Node, Node]]:
        """Return the keys of each type and the field, for the properties that can be imported."""
        imported = (
            self._import_property(node, f"{path}.properties.{label_node(node, number)}")
            for number, node in enumerate(nodes, start=1)
        )
        return [pair for pair in imported if pair is not None]

    def _import_property(self, node: Node, path: str) -> tuple[Node, Node] | None:
        keys, members = self._import_parts(node, path)
        attempts = (keys, {key: value for key, value in keys.items() if key != "enum"})
        for attempt in attempts if keys.get("enum") else (keys,):
            try:
                field_type = parse_odcs_type(attempt)
                field = _make_field(node, field_type, members)
                parse_contract({"topic": "imported", "fields": [field]})
            except ContractError as error:
                self.reasons[path] = " ".join(str(error).removeprefix("Contract imported ").split())
            else:
                self.reasons.pop(path, None)
                self._note_assumption(node, field_type, path)
                return {**attempt, "name": field["name"]}, field
        return None

    def _import_parts(self, node: Node, path: str) -> tuple[Node, list[Node]]:
        """Return a property without what cannot be imported, and the described members of its struct."""
        if node.get("properties"):
            pairs = self._import_all(node["properties"], path)
            is_described = any(
                "description" in keys or field.keys() & {"personal", "fields"} for keys, field in pairs
            )
            members = [field for _, field in pairs] if is_described else []
            return {**node, "properties": [keys for keys, _ in pairs]}, members
        if node.get("items"):
            items, members = self._import_parts(node["items"], f"{path}.items")
            return {**node, "items": items}, members
        if (node.get("map") or {}).get("value"):
            value, members = self._import_parts(node["map"]["value"], f"{path}.map.value")
            return {**node, "map": {**node["map"], "value": value}}, members
        return dict(node), []

    def _note_assumption(self, node: Node, field_type: FieldType, path: str) -> None:
        options = node.get("logicalTypeOptions") or {}
        if field_type.is_timestamp and "format" not in options and "physicalType" not in node:
            action = f"imported as {field_type}; check how records write it"
            self.assumptions.append(ImportNote(path, "a timestamp without a format", action))


def _make_field(node: Node, field_type: FieldType, members: list[Node]) -> Node:
    text = str(field_type)
    before, struct, _ = text.partition("struct<")
    if members and struct:
        text = f"{before}struct{'>' * before.count('<')}"
    field: Node = {"name": node.get("physicalName") or node.get("name"), "type": text}
    field["doc"] = node.get("description") or ""
    if not node.get("required"):
        field["required"] = False
    if node.get("classification") == PERSONAL:
        field["personal"] = True
    return {**field, "fields": members} if members else field


def find_custom(node: Mapping[str, Any], name: str) -> Any:
    """Return the value of a custom property, or None."""
    properties = node.get("customProperties") or []
    return next((each.get("value") for each in properties if each.get("property") == name), None)
