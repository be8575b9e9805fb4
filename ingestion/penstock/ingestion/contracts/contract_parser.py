"""Parses the document of a contract. Every problem is collected with the path of its key."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.core.duration import parse_duration_ms
from penstock.core.errors import DurationError
from penstock.core.names import suggest_name
from penstock.ingestion.contracts.contract import Contract, ContractField, TopicLayout
from penstock.ingestion.contracts.contract_problems import ContractProblemCollector
from penstock.ingestion.contracts.future_skew import parse_future_skew
from penstock.ingestion.contracts.type_keys import TYPE_KEYS, compose_type
from penstock.ingestion.errors import ContractError

_OPTIONAL_TEXT = str | None
_SCALAR_KEYS = {
    "topic": str,
    "doc": str,
    "key": _OPTIONAL_TEXT,
    "event_time": _OPTIONAL_TEXT,
    "id": _OPTIONAL_TEXT,
    "encoding": str,
    "deletes": _OPTIONAL_TEXT,
    "compatibility": str,
    "max_bytes": int,
    "owner": _OPTIONAL_TEXT,
    "unknown_fields": str,
}
CONTRACT_KEYS: Mapping[str, Any] = {
    **_SCALAR_KEYS,
    "max_out_of_orderness": str,
    "max_future_skew": _OPTIONAL_TEXT,
    "envelope": dict,
    "fields": list,
    "layout": dict,
    "environments": dict,
}
LAYOUT_KEYS: Mapping[str, Any] = {
    "partitions": int,
    "replicas": int,
    "retention": str,
    "compacted": bool,
    "settings": dict,
}
FIELD_KEYS: Mapping[str, Any] = {
    "name": str,
    "type": str,
    "doc": str,
    "required": bool,
    "personal": bool,
    **TYPE_KEYS,
}
_REQUIRED_FIELD_KEYS = ("name", "type", "doc")
_ROLE_KEYS = ("key", "event_time", "id")
_TYPE_NAMES = {
    str: "text",
    _OPTIONAL_TEXT: "text",
    int: "an integer",
    bool: "true or false",
    list: "a list",
}


def parse_contract(document: object) -> Contract:
    """Return the contract that a parsed YAML document declares; raise ContractError with all of its problems."""
    return _ContractParser().parse(document)


class _ContractParser:
    """Parses one document. What is invalid is reported and left out, so that the rest is checked as well."""

    def __init__(self) -> None:
        self._problems = ContractProblemCollector()

    def parse(self, document: object) -> Contract:
        values = self._select_valid(document, "The contract", CONTRACT_KEYS, "")
        if isinstance(document, Mapping) and not (document.get("topic") and document.get("fields")):
            self._problems.add("A contract needs 'topic' and 'fields'. Add what is missing.", "topic")
        if "topic" not in values or "fields" not in values:
            self._problems.raise_problems()
        options = self._parse_options(values)
        fields = self._parse_fields(values["fields"], "fields")
        if self._problems.has_problems:
            # A role may name a field that is left out.
            options |= dict.fromkeys(_ROLE_KEYS)
        contract = None
        with self._problems.collect("topic"):
            contract = Contract(fields=fields, **options)
        self._problems.raise_problems()
        assert contract is not None
        return contract

    def _parse_options(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return everything of a contract except its fields."""
        options: dict[str, Any] = {"doc": ""}
        options |= {name: value for name, value in values.items() if name in _SCALAR_KEYS}
        with self._problems.collect("max_out_of_orderness"):
            options["max_out_of_orderness_ms"] = _parse_duration_ms(
                values.get("max_out_of_orderness", "10 seconds")
            )
        options["envelope"] = tuple(
            (str(name), str(path)) for name, path in values.get("envelope", {}).items()
        )
        if (skew_text := values.get("max_future_skew")) is not None:
            with self._problems.collect("max_future_skew"):
                options["max_future_skew"] = parse_future_skew(skew_text)
        layout = self._parse_layout(values.get("layout", {}), TopicLayout(), "layout")
        environments = [
            (name, self._parse_layout(node, layout, f"environments.{name}"))
            for name, node in values.get("environments", {}).items()
        ]
        return {**options, "layout": layout, "environments": tuple(environments)}

    def _parse_fields(self, nodes: Sequence[object], path: str) -> tuple[ContractField, ...]:
        parsed = [self._parse_field(node, f"{path}.{number}") for number, node in enumerate(nodes, start=1)]
        return tuple(field for field in parsed if field is not None)

    def _parse_field(self, node: object, path: str) -> ContractField | None:
        values = self._select_valid(node, "A field", FIELD_KEYS, path)
        if not isinstance(node, Mapping):
            return None
        missing = [key for key in _REQUIRED_FIELD_KEYS if key not in node]
        if missing:
            names = " and no ".join(f"'{key}'" for key in missing)
            self._problems.add(f"Field {node.get('name', dict(node))!r} has no {names}. Add it.", path)
        if "type" not in values:
            return None
        member_nodes = values.get("fields", ())
        members = self._parse_fields(member_nodes, f"{path}.fields")
        if len(members) < len(member_nodes):
            return None
        type_text = None
        with self._problems.collect(f"{path}.type"):
            type_text = compose_type(values, members)
        if "name" not in values or type_text is None:
            return None
        # Lineage and erasure know top-level fields: a struct with a personal member is personal.
        personal = values.get("personal", False) or any(member.personal for member in members)
        return ContractField(
            values["name"],
            type_text,
            values.get("doc", ""),
            values.get("required", True),
            personal,
            members,
        )

    def _parse_layout(self, node: object, base: TopicLayout, path: str) -> TopicLayout:
        values = self._select_valid(node, "A layout", LAYOUT_KEYS, path)
        settings = dict(base.settings) | {
            key: str(value) for key, value in values.get("settings", {}).items()
        }
        retention_ms = base.retention_ms
        if "retention" in values:
            with self._problems.collect(f"{path}.retention"):
                retention_ms = _parse_retention_ms(values["retention"])
        return TopicLayout(
            partitions=values.get("partitions", base.partitions),
            replicas=values.get("replicas", base.replicas),
            retention_ms=retention_ms,
            compacted=values.get("compacted", base.compacted),
            settings=tuple(sorted(settings.items())),
        )

    def _select_valid(
        self, node: object, subject: str, allowed_keys: Mapping[str, Any], path: str
    ) -> dict[str, Any]:
        """Return the keys of a mapping that are known and have a value of the right type; report all others."""
        if not isinstance(node, Mapping):
            self._problems.add(
                f"{subject} must be a mapping, but is {type(node).__name__}: {node!r:.80}", path
            )
            return {}
        valid = {}
        for name, value in node.items():
            key_path = f"{path}.{name}".lstrip(".")
            if name not in allowed_keys:
                hint = suggest_name(str(name), allowed_keys)
                keys = ", ".join(sorted(allowed_keys))
                self._problems.add(f"{subject} has an unknown key '{name}'.{hint} Keys: {keys}.", key_path)
            elif not isinstance(value, allowed_keys[name]):
                expected = _TYPE_NAMES.get(allowed_keys[name], "a mapping")
                self._problems.add(f"{subject} has {name}: {value!r:.80}, which must be {expected}", key_path)
            else:
                valid[name] = value
        return valid


def _parse_retention_ms(text: str) -> int:
    return -1 if text == "forever" else _parse_duration_ms(text)


def _parse_duration_ms(text: str) -> int:
    try:
        return parse_duration_ms(text)
    except DurationError as error:
        raise ContractError(str(error)) from None
